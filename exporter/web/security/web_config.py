"""The web config file in the format of the Prometheus exporter toolkit. Pure: bytes to values, every problem located.

What is accepted here, `promtool check web-config` accepts too. A key of that format that is not honoured is refused by
name: somebody who wrote it relies on it. Hashes of passwords never show in a message.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType

import yaml

from exporter.config_file import MAX_PROBLEMS, NULL_TAG, NotYaml, compose_yaml, describe, suggest
from exporter.config_keys import show
from exporter.errors import ConfigError
from exporter.web.security.cipher_suites import SUITES, TLS13_SUITES
from exporter.web.security.yaml_nodes import NodeReader

# One check of cost 14 takes one to two seconds of a core; each step more doubles it.
MAX_BCRYPT_COST = 14
# The last character of a salt carries two bits: Go ignores the others, the library here refuses them.
BCRYPT_HASH = re.compile(r"\$2[aby]\$(?P<cost>0[4-9]|[12]\d|3[01])\$[./A-Za-z0-9]{21}[.Oeu][./A-Za-z0-9]{31}", re.ASCII)

HEADER_VALUES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "Content-Security-Policy": (),
        "Strict-Transport-Security": (),
        "X-Content-Type-Options": ("nosniff",),
        "X-Frame-Options": ("deny", "sameorigin"),
        "X-XSS-Protection": (),
    }
)
"""The headers that can be set, with the values that each may have; none: any text."""

INLINE = "only files are read, so that certificates can be replaced; use {}"
UNVERIFIED = "certificates that nobody verifies keep nobody out; use RequireAndVerifyClientCert"
REFUSED: Mapping[str, str] = MappingProxyType(
    {
        "rate_limit": "requests are not limited here; limit them in a proxy",
        "basic_auth_excluded_paths": "/-/healthy and /-/ready are always open, /metrics with web.public_metrics",
        "auth_excluded_paths": "/-/healthy and /-/ready are always open, /metrics with web.public_metrics",
        "tls_server_config.cert": INLINE.format("cert_file"),
        "tls_server_config.key": INLINE.format("key_file"),
        "tls_server_config.client_ca": INLINE.format("client_ca_file"),
        "tls_server_config.client_allowed_sans": "names in client certificates are not looked at; use a client_ca_file "
        "of its own",
        "tls_server_config.curve_preferences": "OpenSSL chooses the curve",
        "http_server_config.http2 true": "HTTP/1.1 is spoken; leave the key out or write false",
        "TLS10": "it is broken, and OpenSSL no longer offers it",
        "TLS11": "it is broken, and OpenSSL no longer offers it",
        "RequestClientCert": UNVERIFIED,
        "RequireAnyClientCert": UNVERIFIED,
        "RequireClientCert": UNVERIFIED,
    }
)
"""What the format knows and this exporter refuses, with the reason and what to do instead."""


class TlsVersion(StrEnum):
    """The versions that can be asked for, by the format's names."""

    TLS12 = "TLS12"
    TLS13 = "TLS13"


class ClientCertificates(StrEnum):
    """Whether clients show a certificate, by the format's names."""

    NONE = "NoClientCert"
    IF_GIVEN = "VerifyClientCertIfGiven"
    REQUIRED = "RequireAndVerifyClientCert"


@dataclass(frozen=True, slots=True)
class TlsServerConfig:
    """`tls_server_config`. Paths are as seen from the working directory; `ciphers` are OpenSSL's names for TLS 1.2.

    No ciphers: OpenSSL's own choice.
    """

    cert_file: Path
    key_file: Path
    client_ca_file: Path | None = None
    client_certificates: ClientCertificates = ClientCertificates.NONE
    min_version: TlsVersion = TlsVersion.TLS12
    max_version: TlsVersion = TlsVersion.TLS13
    ciphers: tuple[str, ...] = ()
    prefer_server_ciphers: bool = True

    @property
    def files(self) -> tuple[Path, ...]:
        """Every file that it names."""
        return (self.cert_file, self.key_file, *([self.client_ca_file] if self.client_ca_file else []))


@dataclass(frozen=True, slots=True)
class WebServerConfig:
    """A whole file. `users` maps names to bcrypt hashes and shows in no repr; no users: nobody is asked who he is."""

    tls: TlsServerConfig | None = None
    users: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


def parse_web_config(name: str, content: bytes) -> WebServerConfig:
    """The file `name` as values; relative paths in it are relative to it. Raises `ConfigError` with every problem."""
    try:
        root = compose_yaml(content)
    except NotYaml as error:
        raise ConfigError([f"{name}{error}"]) from None
    reader = _Reader(name)
    config = reader.read(root) if root is not None else WebServerConfig()
    if reader.problems:
        raise ConfigError(reader.problems[:MAX_PROBLEMS])
    return config


class _Reader:
    """Reads the sections of one document."""

    def __init__(self, name: str) -> None:
        self._nodes = NodeReader(name, REFUSED)
        self._directory = Path(name).parent

    @property
    def problems(self) -> Sequence[str]:
        return self._nodes.problems

    def read(self, root: yaml.Node) -> WebServerConfig:
        sections = self._nodes.mapping(root, "", ("tls_server_config", "http_server_config", "basic_auth_users"))
        tls = users = headers = None
        if "tls_server_config" in sections:
            tls = self._tls(sections["tls_server_config"])
        if "basic_auth_users" in sections:
            users = self._users(sections["basic_auth_users"])
        if "http_server_config" in sections:
            headers = self._http(sections["http_server_config"])
        return WebServerConfig(tls, MappingProxyType(users or {}), MappingProxyType(headers or {}))

    def _tls(self, node: yaml.Node) -> TlsServerConfig | None:
        known = (
            *("cert_file", "key_file", "client_ca_file", "client_auth_type", "min_version", "max_version"),
            *("cipher_suites", "prefer_server_cipher_suites"),
        )
        path = "tls_server_config"
        found = self._nodes.mapping(node, path, known)
        texts = {
            key: self._nodes.text(value, f"{path}.{key}") or "" for key, value in found.items() if key in known[:6]
        }
        if not found:
            return None
        for key in ("cert_file", "key_file"):
            if not texts.get(key):
                self._nodes.report(node, f"{path}.{key}: is missing; TLS needs a certificate and its key")
        lowest = self._version(found, texts, "min_version", TlsVersion.TLS12)
        highest = self._version(found, texts, "max_version", TlsVersion.TLS13)
        ciphers: tuple[str, ...] = ()
        if "cipher_suites" in found:
            names = self._suites(found["cipher_suites"])
            ciphers = tuple(SUITES[name] for name in names if name in SUITES)
            if names and not ciphers:
                lowest = TlsVersion.TLS13
        if lowest > highest:
            self._nodes.report(
                node, f"{path}: no version of TLS is left between min_version, max_version and cipher_suites"
            )
        ca_file = self._directory / texts["client_ca_file"] if texts.get("client_ca_file") else None
        return TlsServerConfig(
            cert_file=self._directory / texts.get("cert_file", ""),
            key_file=self._directory / texts.get("key_file", ""),
            client_ca_file=ca_file,
            client_certificates=self._client_certificates(node, found, texts, ca_file),
            min_version=lowest,
            max_version=highest,
            ciphers=ciphers,
            prefer_server_ciphers=self._nodes.flag(
                found, "tls_server_config.prefer_server_cipher_suites", default=True
            ),
        )

    def _version(
        self, found: Mapping[str, yaml.Node], texts: Mapping[str, str], key: str, default: TlsVersion
    ) -> TlsVersion:
        # An empty text is no version for promtool; only a null is.
        if key not in found or found[key].tag == NULL_TAG or not isinstance(found[key], yaml.ScalarNode):
            return default
        if texts[key] in list(TlsVersion):
            return TlsVersion(texts[key])
        self._nodes.not_among(found[key], f"tls_server_config.{key}", texts[key], list(TlsVersion))
        return default

    def _client_certificates(
        self, node: yaml.Node, found: Mapping[str, yaml.Node], texts: Mapping[str, str], ca_file: Path | None
    ) -> ClientCertificates:
        path, text = "tls_server_config.client_auth_type", texts.get("client_auth_type") or ClientCertificates.NONE
        if text not in list(ClientCertificates):
            self._nodes.not_among(found["client_auth_type"], path, text, list(ClientCertificates))
            return ClientCertificates.NONE
        asked = ClientCertificates(text)
        if asked is not ClientCertificates.NONE and ca_file is None:
            self._nodes.report(
                node, f"{path}: {asked} needs a client_ca_file; without one any public authority would do"
            )
        if asked is ClientCertificates.NONE and ca_file is not None:
            self._nodes.report(
                node, f"{path}: is missing; with a client_ca_file it is mostly RequireAndVerifyClientCert"
            )
        return asked

    def _suites(self, node: yaml.Node) -> Sequence[str]:
        path = "tls_server_config.cipher_suites"
        if node.tag == NULL_TAG:
            return ()
        if not isinstance(node, yaml.SequenceNode):
            self._nodes.report(node, f"{path}: expected a list, got {describe(node)}")
            return ()
        names = []
        for item in node.value:
            name = self._nodes.text(item, path) or ""
            if name in SUITES or name in TLS13_SUITES:
                names.append(name)
            elif isinstance(item, yaml.ScalarNode):
                self._nodes.report(item, f"{path}: {show(name)} is not offered{suggest(name, SUITES)}")
        return names

    def _users(self, node: yaml.Node) -> Mapping[str, str]:
        users = {}
        for name, value in self._nodes.mapping(node, "basic_auth_users", None).items():
            path = f"basic_auth_users.{name if name.isprintable() and name else show(name)}"
            if not name or ":" in name:
                self._nodes.report(value, f"{path}: a name of a user is not empty and has no colon")
            text = self._nodes.text(value, path)
            found = BCRYPT_HASH.fullmatch(text or "")
            if found is None:
                self._nodes.report(value, f"{path}: expected a bcrypt hash such as `htpasswd -nB` prints")
            elif int(found["cost"]) > MAX_BCRYPT_COST:
                self._nodes.report(
                    value, f"{path}: the cost {found['cost']} of the hash is too high; use {MAX_BCRYPT_COST} or less"
                )
            else:
                users[name] = found[0]
        return users

    def _http(self, node: yaml.Node) -> Mapping[str, str]:
        found = self._nodes.mapping(node, "http_server_config", ("http2", "headers"))
        if self._nodes.flag(found, "http_server_config.http2", default=False):
            self._nodes.report(found["http2"], f"http_server_config.http2: {REFUSED['http_server_config.http2 true']}")
        path = "http_server_config.headers"
        headers = {}
        for name, value in self._nodes.mapping(found.get("headers"), path, tuple(HEADER_VALUES)).items():
            text = self._nodes.text(value, f"{path}.{name}") or ""
            allowed = HEADER_VALUES[name]
            if allowed and text not in allowed:
                self._nodes.not_among(value, f"{path}.{name}", text, allowed)
            elif not text.isprintable() or not text.isascii():
                self._nodes.report(value, f"{path}.{name}: expected ASCII on one line")
            elif text:
                headers[name] = text
        return headers
