"""Asks the replica on this host for `/-/healthy`, for containers without a shell. Imports little: it runs every minute."""

from __future__ import annotations

import http.client
from collections.abc import Sequence

from exporter.config import WebConfig
from exporter.errors import HealthcheckFailed

TIMEOUT_SECONDS = 3.0
LOOPBACK = ("127.0.0.1", "::1")
EVERYWHERE = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 -- compared with, not listened on


def ask(web: WebConfig) -> None:
    """Return when the replica that listens as `web` says is alive. Raises `HealthcheckFailed`, or `ConfigError`."""
    host, _, port = web.listen_address.rpartition(":")
    path = f"/{web.route_prefix.strip('/')}/-/healthy"
    reasons = []
    for address in addresses(host.strip("[]")):
        try:
            status = _get(_connection(web, address, int(port)), path)
        except (OSError, http.client.HTTPException) as error:
            reasons.append(f"{address} port {port}: {error}")
        else:
            if status == http.client.OK:
                return
            reasons.append(f"{address} port {port}: answered {status}")
    raise HealthcheckFailed("not healthy: " + "; ".join(reasons))


def addresses(host: str) -> Sequence[str]:
    """Where to ask a listener on `host`: over loopback when it listens everywhere."""
    if host == "::":
        return LOOPBACK[::-1]
    return LOOPBACK if host in EVERYWHERE else (host,)


def _connection(web: WebConfig, address: str, port: int) -> http.client.HTTPConnection:
    if not web.config.file:
        return http.client.HTTPConnection(address, port, timeout=TIMEOUT_SECONDS)
    from exporter.web.web_files import WebFiles

    settings = WebFiles(web.config.file).load()
    if settings.context is None:
        return http.client.HTTPConnection(address, port, timeout=TIMEOUT_SECONDS)
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # the certificate is for the name that others use
    context.verify_mode = ssl.CERT_NONE
    return http.client.HTTPSConnection(address, port, timeout=TIMEOUT_SECONDS, context=context)


def _get(connection: http.client.HTTPConnection, path: str) -> int:
    """The status of the answer. A demand for a client's certificate is an answer as well: the loop turns."""
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except OSError as error:
        if "CERTIFICATE_REQUIRED" in str(getattr(error, "reason", "")) or _is_refused_handshake(error):
            return int(http.client.OK)
        raise
    finally:
        connection.close()


def _is_refused_handshake(error: OSError) -> bool:
    return getattr(error, "reason", None) == "SSLV3_ALERT_HANDSHAKE_FAILURE"
