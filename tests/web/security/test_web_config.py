"""The web config file: what it means, what is refused and how, and that promtool takes whatever is taken here."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exporter.errors import ConfigError
from exporter.web.security.cipher_suites import SUITES, TLS13_SUITES
from exporter.web.security.web_config import (
    HEADER_VALUES,
    ClientCertificates,
    TlsServerConfig,
    TlsVersion,
    WebServerConfig,
    parse_web_config,
)
from tests.web.certificates import HASH, MUTUAL, TLS, USERS, WebConfigFile

HEADERS = "http_server_config:\n  headers:\n"


def parse(text: str, name: str = "web.yml") -> WebServerConfig:
    return parse_web_config(name, text.encode())


def problems(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse(text)
    return list(caught.value.problems)


def promtool_accepts(*paths: Path | str) -> bool:
    command = ["promtool", "check", "web-config", *map(str, paths)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


GOOD = {
    "nothing": "",
    "only a comment": "# nothing yet\n",
    "null": "null\n",
    "empty sections": "tls_server_config:\nhttp_server_config:\nbasic_auth_users:\n",
    "empty mappings": "tls_server_config: {}\nhttp_server_config: {}\nbasic_auth_users: {}\n",
    "byte order mark": "\ufeff" + USERS,
    "tls": TLS,
    "mutual tls": MUTUAL,
    "certificate if given": MUTUAL.replace("RequireAndVerifyClientCert", "VerifyClientCertIfGiven"),
    "no client certificate, said": TLS + "  client_auth_type: NoClientCert\n",
    "nulls are defaults": TLS + "  client_auth_type:\n  client_ca_file:\n  min_version:\n  cipher_suites: ~\n",
    "versions": TLS + "  min_version: TLS13\n  max_version: 'TLS13'\n",
    "every suite": TLS + f"  cipher_suites: [{', '.join([*SUITES, *sorted(TLS13_SUITES)])}]\n",
    "suites of TLS 1.3": TLS + "  cipher_suites:\n  - TLS_AES_128_GCM_SHA256\n",
    "no preference": TLS + "  prefer_server_cipher_suites: no\n",
    "users": USERS,
    "names that are words": f"basic_auth_users:\n  yes: {HASH}\n  123: {HASH}\n  'ünï \"cödé': {HASH}\n",
    "every kind of hash": "basic_auth_users:\n"
    + "".join(f"  {kind}: ${kind}{HASH[3:]}\n" for kind in ("2a", "2b", "2y")),
    "http1": "http_server_config:\n  http2: false\n",
    "every header": HEADERS
    + "    X-Frame-Options: sameorigin\n    X-Content-Type-Options: nosniff\n    X-XSS-Protection: 1; mode=block\n"
    + "    Strict-Transport-Security: max-age=3\n    Content-Security-Policy: \"default-src 'self'\"\n",
    "blank header": HEADERS + "    Content-Security-Policy: ''\n",
    "anchors": f"basic_auth_users:\n  a: &hash {HASH}\n  b: *hash\n",
}

# What each is called by in the message. promtool refuses these as well.
REFUSED_BY_BOTH = {
    "unknown section": ("tls_config: {}\n", "tls_config: unknown key; did you mean tls_server_config?"),
    "unknown key": (TLS + "  cert_fiel: x\n", "tls_server_config.cert_fiel: unknown key; did you mean cert_file?"),
    "key twice": (TLS + "  cert_file: x\n", "tls_server_config.cert_file: given twice"),
    "user twice": (USERS + f"  alice: {HASH}\n", "basic_auth_users.alice: given twice"),
    "excluded paths": ("basic_auth_excluded_paths: [/x]\n", "basic_auth_excluded_paths: refused: /-/healthy and"),
    "rate limit": ("rate_limit: {burst: 3}\n", "rate_limit: refused: requests are not limited here"),
    "certificate inline": (TLS + "  cert: x\n", "tls_server_config.cert: refused: only files are read"),
    "names of clients": (TLS + "  client_allowed_sans: [a]\n", "tls_server_config.client_allowed_sans: refused"),
    "no key": ("tls_server_config: {cert_file: a}\n", "tls_server_config.key_file: is missing"),
    "no certificate": ("tls_server_config: {key_file: a}\n", "tls_server_config.cert_file: is missing"),
    "unknown version": (TLS + "  min_version: TLS14\n", 'min_version: expected one of TLS12, TLS13, got "TLS14"'),
    "empty version": (TLS + "  max_version: ''\n", 'max_version: expected one of TLS12, TLS13, got ""'),
    "unknown suite": (TLS + "  cipher_suites: [TLS_RC4]\n", 'cipher_suites: "TLS_RC4" is not offered'),
    "suites as a text": (TLS + "  cipher_suites: a\n", "cipher_suites: expected a list, got a single value"),
    "authority without policy": (TLS + "  client_ca_file: clients.crt\n", "client_auth_type: is missing"),
    "unknown policy": (TLS + "  client_auth_type: Yes\n", 'got "Yes"'),
    "quoted boolean": (TLS + "  prefer_server_cipher_suites: 'true'\n", "expected true or false"),
    "empty hash": ("basic_auth_users:\n  alice: ''\n", "basic_auth_users.alice: expected a bcrypt hash"),
    "null hash": ("basic_auth_users:\n  alice:\n", "basic_auth_users.alice: expected a bcrypt hash"),
    "password in place of a hash": ("basic_auth_users:\n  alice: hunter2\n", "expected a bcrypt hash"),
    "cost too low": (f"basic_auth_users:\n  alice: $2y$03{HASH[6:]}\n", "expected a bcrypt hash"),
    "users as a list": ("basic_auth_users: []\n", "basic_auth_users: expected keys and values, got a list"),
    "a list": ("[]\n", "the file: expected keys and values, got a list"),
    "a text": ("text\n", "the file: expected keys and values, got a single value"),
    "header of another value": (HEADERS + "    X-Frame-Options: DENY\n", "X-Frame-Options: expected one of deny, same"),
    "header in other letters": (HEADERS + "    x-frame-options: deny\n", "x-frame-options: unknown key; did you mean"),
    "another header": (HEADERS + "    Server: x\n", "http_server_config.headers.Server: unknown key"),
    "not closed": ("basic_auth_users: {", "web.yml, line 1, column 20:"),
    "tabs": ("basic_auth_users:\n\talice: x\n", "indent with spaces"),
}

# The format knows these; here they are refused, because nothing would come of them or nobody should have them.
REFUSED_HERE = {
    "http2": ("http_server_config: {http2: true}\n", "http_server_config.http2: HTTP/1.1 is spoken"),
    "curves": (
        TLS + "  curve_preferences: [X25519]\n",
        "tls_server_config.curve_preferences: refused: OpenSSL chooses",
    ),
    "TLS 1.0": (TLS + "  min_version: TLS10\n", "min_version: TLS10 is refused: it is broken"),
    "TLS 1.1": (TLS + "  max_version: TLS11\n", "max_version: TLS11 is refused: it is broken"),
    "no version left": (TLS + "  min_version: TLS13\n  max_version: TLS12\n", "no version of TLS is left"),
    "no suite left": (
        TLS + "  max_version: TLS12\n  cipher_suites: [TLS_AES_128_GCM_SHA256]\n",
        "no version of TLS is left",
    ),
    "no forward secrecy": (
        TLS + "  cipher_suites: [TLS_RSA_WITH_AES_128_CBC_SHA]\n",
        '"TLS_RSA_WITH_AES_128_CBC_SHA" is not offered',
    ),
    "unverified certificates": (
        TLS + "  client_auth_type: RequireAnyClientCert\n",
        "client_auth_type: RequireAnyClientCert is refused: certificates that nobody verifies keep nobody out",
    ),
    "any public authority": (
        TLS + "  client_auth_type: RequireAndVerifyClientCert\n",
        "client_auth_type: RequireAndVerifyClientCert needs a client_ca_file",
    ),
    "options without a certificate": ("tls_server_config: {min_version: TLS13}\n", "cert_file: is missing"),
    "name with a colon": (f"basic_auth_users:\n  'a:b': {HASH}\n", "a name of a user is not empty and has no colon"),
    "no name": (f"basic_auth_users:\n  '': {HASH}\n", 'basic_auth_users."": a name of a user is not empty'),
    "cost too high": (f"basic_auth_users:\n  alice: $2y$15{HASH[6:]}\n", "the cost 15 of the hash is too high"),
    "salt that only Go reads": (f"basic_auth_users:\n  a: {HASH[:28]}z{HASH[29:]}\n", "expected a bcrypt hash"),
    "unknown kind of hash": (f"basic_auth_users:\n  a: $2z{HASH[3:]}\n", "expected a bcrypt hash"),
    "header on two lines": (
        HEADERS + '    X-XSS-Protection: "a\\nb"\n',
        "X-XSS-Protection: expected ASCII on one line",
    ),
    "two documents": ("{}\n---\n{}\n", "web.yml, line 2"),
}


@pytest.mark.needs("promtool")
@pytest.mark.parametrize("text", GOOD.values(), ids=GOOD)
def test_what_is_good_is_good_for_promtool_too(web_config: WebConfigFile, text: str) -> None:
    parse(text)
    assert promtool_accepts(web_config.write(text))


@pytest.mark.needs("promtool")
@pytest.mark.parametrize(("text", "named"), REFUSED_BY_BOTH.values(), ids=REFUSED_BY_BOTH)
def test_what_promtool_refuses_is_refused_by_name(web_config: WebConfigFile, text: str, named: str) -> None:
    assert named in "\n".join(problems(text))
    assert not promtool_accepts(web_config.write(text))


@pytest.mark.needs("promtool")
@pytest.mark.parametrize(("text", "named"), REFUSED_HERE.values(), ids=REFUSED_HERE)
def test_what_is_not_honoured_is_refused_by_name_though_promtool_takes_it(
    web_config: WebConfigFile, text: str, named: str
) -> None:
    """Field case R08."""
    assert named in "\n".join(problems(text))
    assert promtool_accepts(web_config.write(text))


def mostly(good: list[str], odd: list[str]) -> st.SearchStrategy[str]:
    """A value that is mostly right: a file with many keys is refused for the first wrong one."""
    return st.sampled_from([*good * (8 * len(odd) // len(good) + 1), *odd])


def section(
    name: str, keys: dict[str, st.SearchStrategy[str]], optional: dict[str, st.SearchStrategy[str]]
) -> st.SearchStrategy[str]:
    lines = st.fixed_dictionaries(keys, optional=optional)
    written = lines.map(lambda found: f"{name}:\n" + "".join(f"  {key}: {value}\n" for key, value in found.items()))
    return st.just("") | written


MUTUAL_LINES = "RequireAndVerifyClientCert\n  client_ca_file: clients.crt"
FILES = st.tuples(
    section(
        "tls_server_config",
        {"cert_file": mostly(["server.crt"], ["~"]), "key_file": mostly(["server.key", "'server.key'"], ["''"])},
        {
            "client_auth_type": mostly(["~", "NoClientCert", "''", MUTUAL_LINES], ["no", "VerifyClientCertIfGiven"]),
            "min_version": mostly(["TLS12", "TLS13", "~"], ["TLS10", "''", "1.2"]),
            "max_version": mostly(["TLS13", '"TLS13"', "!!str TLS13"], ["TLS12", "[TLS13]"]),
            "prefer_server_cipher_suites": mostly(["true", "False", "yes", "~", "On"], ["y", "'no'", "1", "oN"]),
            "cipher_suites": st.lists(mostly([*SUITES, *sorted(TLS13_SUITES)], ["x", "~", "''"]), max_size=3).map(
                lambda names: f"[{', '.join(names)}]"
            ),
        },
    ),
    section(
        "http_server_config",
        {},
        {
            "http2": mostly(["false", "no", "~"], ["true", "0"]),
            "headers": st.dictionaries(
                mostly(["X-XSS-Protection", "Content-Security-Policy"], list(HEADER_VALUES)),
                mostly(["deny", "nosniff", "1", "''", "~"], ["{}", "'ü'"]),
                max_size=2,
            ).map(lambda found: "{" + ", ".join(f"{name}: {value}" for name, value in found.items()) + "}"),
        },
    ),
    section(
        "basic_auth_users",
        {},
        {
            name: mostly([HASH, f"'{HASH}'", f"!!str {HASH}", HASH + " "], [f"!!binary {HASH}", "~", "x", HASH[:-1]])
            for name in ("alice", "'b b'", "0x1f", "!!str yes", "1.0", "No")
        },
    ),
    st.sampled_from(["", "", "# comment\n", "---\n", "\ufeff"]),
)


@pytest.mark.needs("promtool")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(FILES)
def test_promtool_takes_whatever_is_taken_here(web_config: WebConfigFile, parts: tuple[str, str, str, str]) -> None:
    text = parts[3] + "".join(parts[:3])
    try:
        parse(text)
    except ConfigError:
        return
    assert promtool_accepts(web_config.write(text))


def test_every_problem_is_reported_at_once_with_its_line() -> None:
    text = (
        "tls_server_config:\n  cert_file: a\n  min_version: TLS9\nrate_limit: {}\nbasic_auth_users:\n"
        "  alice: hunter2\n  'new\\nline': hunter3\nhttp_server_config:\n  http2: true\n"
    )
    found = problems(text)
    assert [problem.partition(": ")[0] for problem in found] == [
        "web.yml, line 4",
        "web.yml, line 2",
        "web.yml, line 3",
        "web.yml, line 6",
        "web.yml, line 7",
        "web.yml, line 9",
    ]
    assert "hunter" not in "\n".join(found)
    assert all(problem.isprintable() for problem in found)


def test_thousands_of_problems_are_not_reported_all() -> None:
    text = "basic_auth_users:\n" + "".join(f"  user{number}: x\n" for number in range(2000))
    assert len(problems(text)) == 50


def test_relative_paths_are_relative_to_the_file() -> None:
    config = parse(MUTUAL.replace("server.key", "/run/server.key"), "/etc/exporter/web.yml")
    assert config.tls is not None
    assert config.tls.files == (
        Path("/etc/exporter/server.crt"),
        Path("/run/server.key"),
        Path("/etc/exporter/clients.crt"),
    )


def test_the_defaults_are_those_of_the_format() -> None:
    assert parse(TLS).tls == TlsServerConfig(Path("server.crt"), Path("server.key"))
    assert parse("") == WebServerConfig()


def test_every_key_reaches_the_values() -> None:
    text = (
        MUTUAL
        + "  min_version: TLS12\n  max_version: TLS12\n  prefer_server_cipher_suites: false\n"
        + "  cipher_suites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS_AES_128_GCM_SHA256]\n"
        + USERS
        + HEADERS
        + "    X-Frame-Options: deny\n    Content-Security-Policy: ''\n"
    )
    config = parse(text)
    assert config.tls == TlsServerConfig(
        cert_file=Path("server.crt"),
        key_file=Path("server.key"),
        client_ca_file=Path("clients.crt"),
        client_certificates=ClientCertificates.REQUIRED,
        max_version=TlsVersion.TLS12,
        ciphers=("ECDHE-RSA-AES128-GCM-SHA256",),
        prefer_server_ciphers=False,
    )
    assert config.users == {"alice": HASH}
    assert config.headers == {"X-Frame-Options": "deny"}
    assert HASH not in repr(config)


def test_only_suites_of_tls_1_3_leave_only_that_version() -> None:
    """As in Go: the list is about TLS 1.2, and an empty one would offer nothing there."""
    tls = parse(TLS + "  cipher_suites: [TLS_CHACHA20_POLY1305_SHA256]\n").tls
    assert tls is not None
    assert (tls.min_version, tls.ciphers) == (TlsVersion.TLS13, ())


@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda text: f"basic_auth_users:\n  {text}".encode()))
def test_any_bytes_are_a_configuration_or_a_located_problem(content: bytes) -> None:
    found: tuple[str, ...] = ()
    try:
        parse_web_config("web.yml", content)
    except ConfigError as error:
        found = error.problems
    assert all(problem.startswith("web.yml") and "\n" not in problem for problem in found)
