"""TLS contexts of our own making, so that the driver never looks for certificates under the home directory.

The modes are libpq's: `allow` tries plain text first, `prefer` TLS first, `require` and stricter know no plain text,
and `require` with a root certificate verifies like `verify-ca`.
"""

from __future__ import annotations

import ssl
from pathlib import Path

from exporter.database.target import SYSTEM_AUTHORITIES, TlsMode, TlsSettings, TlsVersion
from exporter.errors import ConfigError

ALPN = ["postgresql"]  # demanded by servers that take TLS without asking first (sslnegotiation=direct)

_VERSIONS = {
    TlsVersion.TLS_1: ssl.TLSVersion.TLSv1,
    TlsVersion.TLS_1_1: ssl.TLSVersion.TLSv1_1,
    TlsVersion.TLS_1_2: ssl.TLSVersion.TLSv1_2,
    TlsVersion.TLS_1_3: ssl.TLSVersion.TLSv1_3,
}


def attempts(settings: TlsSettings) -> tuple[ssl.SSLContext | None, ...]:
    """The ways to connect to one host, in order: a context, or None for plain text.

    Reads the files that the settings name. Raises `ConfigError` naming each one that cannot be used.
    """
    if settings.mode is TlsMode.DISABLE:
        return (None,)
    context = _context(settings)
    if settings.mode is TlsMode.ALLOW:
        return (None, context)
    if settings.mode is TlsMode.PREFER:
        return (context, None)
    return (context,)


def _context(settings: TlsSettings) -> ssl.SSLContext:
    _check_readable(settings)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = settings.mode is TlsMode.VERIFY_FULL
    context.minimum_version = _VERSIONS[settings.min_version]
    if settings.max_version is not None:
        context.maximum_version = _VERSIONS[settings.max_version]
    context.set_alpn_protocols(ALPN)
    if settings.mode.verifies or (settings.mode is TlsMode.REQUIRE and settings.root_certificate):
        _trust(context, settings)
    else:
        context.verify_mode = ssl.CERT_NONE
    if settings.certificate:
        _identify(context, settings)
    return context


def _trust(context: ssl.SSLContext, settings: TlsSettings) -> None:
    if settings.root_certificate == SYSTEM_AUTHORITIES:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        try:
            context.load_verify_locations(cafile=settings.root_certificate)
        except ssl.SSLError as error:
            raise ConfigError([f"sslrootcert={settings.root_certificate}: not a PEM certificate: {error}"]) from error
    if settings.revocation_list or settings.revocation_directory:
        try:
            context.load_verify_locations(
                cafile=settings.revocation_list or None, capath=settings.revocation_directory or None
            )
        except ssl.SSLError as error:
            raise ConfigError([f"sslcrl={settings.revocation_list}: not a PEM revocation list: {error}"]) from error
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_CHAIN


def _identify(context: ssl.SSLContext, settings: TlsSettings) -> None:
    # Always a password callback: without one OpenSSL asks for the password on the terminal.
    try:
        context.load_cert_chain(settings.certificate, settings.key or None, lambda: settings.key_password)
    except ssl.SSLError as error:
        names = f"sslcert={settings.certificate}" + (f", sslkey={settings.key}" if settings.key else "")
        raise ConfigError([f"{names}: not a PEM certificate and its key, or a wrong sslpassword: {error}"]) from error


def _check_readable(settings: TlsSettings) -> None:
    """Open each named file first: OpenSSL's own errors do not say which file they mean."""
    problems = []
    for name, path in (
        ("sslrootcert", settings.root_certificate if settings.root_certificate != SYSTEM_AUTHORITIES else ""),
        ("sslcert", settings.certificate),
        ("sslkey", settings.key),
        ("sslcrl", settings.revocation_list),
    ):
        try:
            if path:
                Path(path).open("rb").close()
        except OSError as error:
            problems.append(f"{name}={path} cannot be read: {error.strerror}")
    if problems:
        raise ConfigError(problems)
