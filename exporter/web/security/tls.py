"""TLS of the listener: from files to a context, anew for each change of them. A context is never edited."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import NoReturn

from exporter.errors import ConfigError
from exporter.web.security.web_config import ClientCertificates, TlsServerConfig, TlsVersion

VERSIONS = {TlsVersion.TLS12: ssl.TLSVersion.TLSv1_2, TlsVersion.TLS13: ssl.TLSVersion.TLSv1_3}
VERIFICATION = {
    ClientCertificates.NONE: ssl.CERT_NONE,
    ClientCertificates.IF_GIVEN: ssl.CERT_OPTIONAL,
    ClientCertificates.REQUIRED: ssl.CERT_REQUIRED,
}


def load_context(config: TlsServerConfig, source: str) -> ssl.SSLContext:
    """A server's context from the files that `config` of the file `source` names. Blocks; raises `ConfigError`."""
    section = f"{source}: tls_server_config"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = VERSIONS[config.min_version]
    context.maximum_version = VERSIONS[config.max_version]
    context.options |= ssl.OP_NO_RENEGOTIATION
    if not config.prefer_server_ciphers:
        context.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE
    if config.ciphers:
        context.set_ciphers(":".join(config.ciphers))
    context.set_alpn_protocols(["http/1.1"])
    problems = [
        problem
        for key, path in (
            ("cert_file", config.cert_file),
            ("key_file", config.key_file),
            ("client_ca_file", config.client_ca_file),
        )
        if path is not None and (problem := _unreadable(f"{section}.{key}", path))
    ]
    if not problems:
        problems = [*_load_pair(context, config, section), *_load_authorities(context, config, section)]
    if problems:
        raise ConfigError(problems)
    context.verify_mode = VERIFICATION[config.client_certificates]
    return context


def _unreadable(key: str, path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            file.read(1)
    except (OSError, ValueError) as error:
        return f"{key}: {path} cannot be read: {getattr(error, 'strerror', None) or 'not a path'}"
    return None


def _load_pair(context: ssl.SSLContext, config: TlsServerConfig, section: str) -> list[str]:
    try:
        # Without a callback OpenSSL would ask for the password on the terminal.
        context.load_cert_chain(config.cert_file, config.key_file, password=_no_password)
    except _Encrypted:
        return [f"{section}.key_file: {config.key_file} is encrypted; store the key without a password"]
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            return [f"{section}.key_file: {config.key_file} is not the key of the certificate {config.cert_file}"]
        return [f"{section}: {config.cert_file} and {config.key_file} hold no certificate and key in PEM form"]
    return []


def _load_authorities(context: ssl.SSLContext, config: TlsServerConfig, section: str) -> list[str]:
    if config.client_ca_file is None:
        return []
    try:
        context.load_verify_locations(config.client_ca_file)
    except ssl.SSLError:
        return [f"{section}.client_ca_file: {config.client_ca_file} holds no certificate in PEM form"]
    return []


class _Encrypted(Exception):
    """OpenSSL asked for the password of a key."""


def _no_password() -> NoReturn:
    raise _Encrypted
