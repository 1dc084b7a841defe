"""Database URLs as libpq, sqlx and managed providers write them become one target, or every problem at once."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.database.target import Host, SessionAttributes, Target, TlsMode, TlsVersion
from exporter.database.url import ignored_environment, parse_url
from exporter.database.url_parameters import DROPPED, KEPT
from exporter.errors import ConfigError

SECRET = "s3cr3t"


def problems_of(url: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        parse_url(url)
    return caught.value.problems


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "POSTGRES"])
def test_both_schemes_are_understood(scheme: str) -> None:
    target = parse_url(f"{scheme}://windmill:changeme@db:5432/windmill?sslmode=disable")
    assert target == Target(
        hosts=(Host("db", 5432),),
        user="windmill",
        password="changeme",
        database="windmill",
        tls=target.tls,
    )
    assert target.tls.mode is TlsMode.DISABLE


@pytest.mark.parametrize(
    ("authority", "hosts"),
    [
        ("u@db", [("db", 5432)]),
        ("u@db:6543", [("db", 6543)]),
        ("u@[::1]", [("::1", 5432)]),
        ("u@[fe80::1%25eth0]:6543", [("fe80::1%eth0", 6543)]),
        ("u@h1:1,h2:5432", [("h1", 1), ("h2", 5432)]),
        ("u@h1,[::2]:7,h3", [("h1", 5432), ("::2", 7), ("h3", 5432)]),
        ("u@%2Frun%2Fpg:5433", [("/run/pg", 5433)]),
        ("u@", [("localhost", 5432)]),
    ],
)
def test_hosts_keep_their_order_and_their_ports(authority: str, hosts: list[tuple[str, int]]) -> None:
    target = parse_url(f"postgres://{authority}/db")
    assert [(host.name, host.port) for host in target.hosts] == hosts


@pytest.mark.parametrize(
    ("query", "hosts"),
    [
        ("host=/run/pg&port=5433", [("/run/pg", 5433)]),
        ("host=/run/pg", [("/run/pg", 6000)]),
        ("host=h1,h2&port=1,2", [("h1", 1), ("h2", 2)]),
        ("host=h1,h2&port=7", [("h1", 7), ("h2", 7)]),
        ("host=::1", [("::1", 6000)]),
    ],
)
def test_hosts_of_the_query_win(query: str, hosts: list[tuple[str, int]]) -> None:
    target = parse_url(f"postgres://u@front:6000/db?{query}")
    assert [(host.name, host.port) for host in target.hosts] == hosts


def test_an_address_serves_where_no_host_is_named() -> None:
    assert parse_url("postgres:///db?user=u&hostaddr=10.0.0.1").hosts == (Host("10.0.0.1"),)
    named = parse_url("postgres://u@front/db?hostaddr=10.0.0.1")
    assert named.hosts == (Host("front"),)
    assert named.warnings == ("database.url: hostaddr is dropped: the host name is used",)


def test_a_user_with_an_at_sign_is_understood_encoded_and_plain() -> None:
    """Field case F08."""
    for user in ("app%40srv", "app@srv"):
        target = parse_url(f"postgres://{user}:{SECRET}@host/db")
        assert (target.user, target.password, target.hosts[0].name) == ("app@srv", SECRET, "host")


def test_escapes_are_decoded_once() -> None:
    target = parse_url("postgres://u%2525:p%252F%3A%2B+@h/d%20b")
    assert (target.user, target.password, target.database) == ("u%25", "p%2F:++", "d b")


def test_a_percent_sign_that_escapes_nothing_stands_for_itself_as_in_sqlx() -> None:
    assert parse_url("postgres://u:100%sure@h/db").password == "100%sure"


@given(
    user=st.text(min_size=1).filter(lambda text: "\0" not in text),
    password=st.text().filter(lambda text: "\0" not in text),
    database=st.text(min_size=1).filter(lambda text: "\0" not in text),
)
def test_any_encoded_credentials_come_back_unchanged(user: str, password: str, database: str) -> None:
    from urllib.parse import quote

    target = parse_url(f"postgres://{quote(user, safe='')}:{quote(password, safe='')}@h/{quote(database, safe='')}")
    assert (target.user, target.password, target.database) == (user, password, database)


def test_the_database_defaults_to_the_user_and_the_user_is_required() -> None:
    assert parse_url("postgres://windmill@h").database == "windmill"
    assert problems_of("postgres://h/db") == (
        'database.url: names no user: write it as "postgres://USER:PASSWORD@HOST/DATABASE"',
    )


def test_neither_text_nor_repr_shows_the_password() -> None:
    target = parse_url(f"postgres://u:{SECRET}@h1,[::1]:7/db?sslmode=require&sslcert=c&sslpassword={SECRET}")
    assert SECRET not in repr(target) + str(target)
    assert str(target) == 'database "db" as user "u" at h1:5432, [::1]:7'


@pytest.mark.parametrize(
    "url",
    [
        f"postgres://u:{SECRET}/more@h/db",
        f"postgres://u:{SECRET}?more@h/db",
        f"postgres://u:{SECRET}?sslmode=x@h/db",
        f"postgres://u:more/{SECRET}@h/db?x=1",
        f"postgres://u:{SECRET}@h:port{SECRET}/db",
        f"postgres://u@h/db?password=a&{SECRET}=b&sslmode=on",
        f"postgres://u:\n{SECRET}@h/db",
        f"host=h password={SECRET}",
        f"{SECRET}",
        f"postgres://u:{SECRET}%ff@h/db?unknown=1",
        f"postgres://u:{SECRET}%00@h/db",
        f"postgres://u:{SECRET}@[::1/db",
    ],
)
def test_no_problem_quotes_a_part_of_the_password(url: str) -> None:
    assert SECRET not in "".join(problems_of(url))


def test_the_same_problem_is_reported_once() -> None:
    assert problems_of("postgres://u@h/db?" + "a=b&" * 100) == ('database.url: unknown parameter "a"',)


def test_every_problem_is_reported_at_once_and_located() -> None:
    url = (
        "postgres://h1:0,h2:99999/db?sslmod=require&sslmode=requrie&connect_timeout=soon&options=search_path&port=1,2,3"
    )
    with pytest.raises(ConfigError) as caught:
        parse_url(url, "DATABASE_URL")
    assert list(caught.value.problems) == [
        'DATABASE_URL: unknown parameter "sslmod", did you mean "sslmode"?',
        'DATABASE_URL: names no user: write it as "postgres://USER:PASSWORD@HOST/DATABASE"',
        "DATABASE_URL: names 2 hosts but 3 ports",
        'DATABASE_URL: sslmode="requrie" is unknown, did you mean "require"?',
        "DATABASE_URL: connect_timeout is not a whole number of seconds",
        'DATABASE_URL: options cannot be read: expected "-c NAME=VALUE", percent-encoded',
    ]


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "is empty"),
        ("mysql://u@h/db", 'must begin with "postgres://"'),
        ("postgres:u@h", 'must begin with "postgres://"'),
        ("postgres://u@h:0/db", "port of host 1 is not a number from 1 to 65535"),
        ("postgres://u@h,h2:x/db", "port of host 2"),
        ("postgres://u@::1/db", "write an IPv6 address as [ADDRESS]:PORT"),
        ("postgres://u@[::1/db", "unfinished IPv6 address"),
        ("postgres://u@h/db?sslmode=require&sslmode=disable", "sslmode is given twice, with different values"),
        ("postgres://u@h/db?sslmode", "sslmode has no value"),
        ("postgres://u@h/db?sslmode=verify-full", "needs sslrootcert=FILE, or sslrootcert=system"),
        ("postgres://u@h/db?sslmode=verify-ca", "needs sslrootcert=FILE, or sslrootcert=system"),
        ("postgres://u@h/db?sslmode=require&sslrootcert=system", "sslrootcert=system needs sslmode=verify-full"),
        ("postgres://u@h/db?sslnegotiation=direct", "sslnegotiation=direct needs sslmode=require or stricter"),
        ("postgres://u@h/db?sslnegotiation=later", 'sslnegotiation must be "postgres" or "direct"'),
        ("postgres://u@h/db?sslkey=k", "sslkey needs sslcert"),
        ("postgres://u@h/db?ssl_min_protocol_version=TLSv1.4", 'did you mean "TLSv1'),
        ("postgres://u@h/db?ssl_min_protocol_version=TLSv1.3&ssl_max_protocol_version=TLSv1.2", "below the lowest"),
        ("postgres://u@h/db?target_session_attrs=writable", "expected one of any, read-write"),
        ("postgres://u@h/db?a%00b=1", "parameter 1"),
        ("postgres://u@h/%ff", "the database name is not UTF-8"),
    ],
)
def test_a_problem_says_what_to_do(url: str, words: str) -> None:
    assert words in "\n".join(problems_of(url))


@pytest.mark.parametrize("name", sorted(DROPPED))
def test_each_dropped_parameter_is_named_once(name: str) -> None:
    target = parse_url(f"postgres://u@h/db?{name}=1")
    assert target.warnings == (f"database.url: {name} is dropped: {DROPPED[name]}",)


LIBPQ = (
    "host hostaddr port dbname user password passfile require_auth channel_binding connect_timeout client_encoding"
    " options application_name fallback_application_name keepalives keepalives_idle keepalives_interval"
    " keepalives_count tcp_user_timeout replication gssencmode sslmode requiressl sslnegotiation sslcompression"
    " sslcert sslkey sslkeylogfile sslpassword sslcertmode sslrootcert sslcrl sslcrldir sslsni requirepeer"
    " ssl_min_protocol_version ssl_max_protocol_version min_protocol_version max_protocol_version krbsrvname gsslib"
    " gssdelegation scram_client_key scram_server_key service servicefile target_session_attrs load_balance_hosts"
    " oauth_issuer oauth_client_id oauth_client_secret oauth_scope"
)


def test_every_parameter_of_libpq_is_kept_or_dropped() -> None:
    assert [name for name in LIBPQ.split() if name not in KEPT and name not in DROPPED] == []


def test_each_spelling_reaches_the_same_setting() -> None:
    files = itertools.product(["sslrootcert", "ssl-root-cert", "ssl-ca"], ["sslmode", "ssl-mode", "ssl"])
    for root, mode in files:
        tls = parse_url(f"postgres://u@h/db?{mode}=verify-ca&{root}=%2Fca.pem").tls
        assert (tls.mode, tls.root_certificate) == (TlsMode.VERIFY_CA, "/ca.pem")


@pytest.mark.parametrize(
    ("query", "mode"),
    [
        ("", TlsMode.PREFER),
        ("ssl=true", TlsMode.REQUIRE),
        ("ssl=0", TlsMode.DISABLE),
        ("sslmode=REQUIRE", TlsMode.REQUIRE),
        ("requiressl=1", TlsMode.REQUIRE),
        ("requiressl=0", TlsMode.PREFER),
        ("sslrootcert=system", TlsMode.VERIFY_FULL),
    ],
)
def test_the_tls_mode_follows_libpq(query: str, mode: TlsMode) -> None:
    assert parse_url(f"postgres://u@h/db?{query}").tls.mode is mode


def test_tls_details_are_kept() -> None:
    tls = parse_url(
        "postgres://u@h/db?sslmode=verify-full&sslrootcert=ca&sslcert=c&sslkey=k&sslpassword=p&sslcrl=r&sslcrldir=d"
        "&ssl_min_protocol_version=tlsv1.3&ssl_max_protocol_version=TLSv1.3&sslnegotiation=direct"
    ).tls
    assert (tls.certificate, tls.key, tls.key_password) == ("c", "k", "p")
    assert (tls.revocation_list, tls.revocation_directory) == ("r", "d")
    assert (tls.min_version, tls.max_version, tls.direct) == (TlsVersion.TLS_1_3, TlsVersion.TLS_1_3, True)


@pytest.mark.parametrize(
    ("query", "schema"),
    [
        ("options=-c%20search_path%3Dwm", "wm"),
        ("options=-csearch_path=wm", "wm"),
        ("options=--search_path=wm", "wm"),
        ("options=-c+search_path=wm", "wm"),
        ("options=-c search_path=wm", "wm"),
        ("options=-c%20search_path%3Da%5C%20b", "a b"),
        ("options[search_path]=wm", "wm"),
        ("options%5Bsearch_path%5D=wm", "wm"),
        ('options=-c%20search_path%3D"$user",wm', "wm"),
        ("schema=wm", "wm"),
        ("currentSchema=wm", "wm"),
    ],
)
def test_the_schema_is_found_where_people_put_it(query: str, schema: str) -> None:
    target = parse_url(f"postgres://u@h/db?{query}")
    assert (target.schema, target.warnings) == (schema, ())


def test_only_the_first_of_several_schemas_is_used_with_a_warning() -> None:
    target = parse_url("postgres://u@h/db?options=-c%20search_path%3Dwm,public")
    assert target.schema == "wm"
    assert target.warnings == ('database.url: of several schemas only the first, "wm", is used',)


def test_other_options_are_dropped_by_name() -> None:
    target = parse_url(
        "postgres://u@h/db?options=-c%20statement_timeout%3D5s%20-c%20search_path%3Dwm%20endpoint%3Dep-1"
    )
    assert target.schema == "wm"
    assert [warning.split()[2] for warning in target.warnings] == ["statement_timeout", "endpoint"]


def test_the_connect_timeout_is_bounded_and_never_infinite() -> None:
    assert parse_url("postgres://u@h/db?connect_timeout=7").connect_timeout_seconds == 7
    assert parse_url("postgres://u@h/db?connect_timeout=3600").connect_timeout_seconds == 60
    never = parse_url("postgres://u@h/db?connect_timeout=0")
    assert (never.connect_timeout_seconds, len(never.warnings)) == (None, 1)


def test_session_attributes_are_kept() -> None:
    target = parse_url("postgres://u@h1,h2/db?target_session_attrs=read-write")
    assert target.session_attributes is SessionAttributes.READ_WRITE


@pytest.mark.parametrize(
    "url",
    [
        "postgres://postgres:changeme@db/windmill?sslmode=disable",
        "postgres://postgres:windmill@windmill-postgresql/windmill?sslmode=disable",
        "postgresql://u:p@ep-x-pooler.eu.aws.neon.tech/db?sslmode=require&channel_binding=require",
        "postgresql://u:p@ep-x.neon.tech/db?sslmode=require&options=endpoint%3Dep-x",
        "postgresql://postgres.ref:p@aws-0-eu.pooler.supabase.com:6543/postgres?pgbouncer=true&connection_limit=1",
        "postgresql://u:p@db.prisma.io:5432/db?schema=public&pool_timeout=0&sslaccept=accept_invalid_certs",
        "postgres://u:p@h/db?ssl-mode=require&statement-cache-capacity=0&application_name=windmill",
        "postgres://u%40tenant:p@x.postgres.database.azure.com/db?sslmode=require",
        "postgresql://doadmin:p@x.db.ondigitalocean.com:25060/defaultdb?sslmode=require",
    ],
)
def test_urls_of_windmill_and_of_providers_are_accepted(url: str) -> None:
    """Field cases R01, R02 and F35's neighbours: copied shapes, not copied secrets."""
    assert parse_url(url).user


def test_variables_of_other_clients_are_named_in_one_warning_without_their_values() -> None:
    """Field case F88."""
    environ = {"PGHOST": "other", "PGPASSWORD": SECRET, "PGSSLROOTCERT": "/x", "PGDATA": "/data", "HOME": "/root"}
    warning = ignored_environment(environ)
    assert warning is not None
    assert "(PGHOST, PGPASSWORD, PGSSLROOTCERT)" in warning
    assert SECRET not in warning
    assert ignored_environment({"HOME": "/root"}) is None
