"""Asks the replica on this host for `/-/healthy`, for containers without a shell. Imports little, since it runs often.

Neither the web config file nor a certificate is read: the replica may run with older ones than those on the disk.
"""

from __future__ import annotations

import http.client
from collections.abc import Callable, Sequence

from exporter.config import WebConfig
from exporter.errors import HealthcheckFailed

TIMEOUT_SECONDS = 3.0
LOOPBACK = ("127.0.0.1", "::1")
EVERYWHERE = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 -- compared with, not listened on


def ask(web: WebConfig) -> None:
    """Return when the replica that listens as `web` says is alive. Raises `HealthcheckFailed` with what it did instead.

    Where a web config file is configured, TLS is tried after plain HTTP.
    """
    host, _, port = web.listen_address.rpartition(":")
    path = f"/{web.route_prefix.strip('/')}/-/healthy"
    ways: list[Callable[[str, int, str], int]] = [_plain, _over_tls] if web.config.file else [_plain]
    reasons = []
    for address in addresses(host.strip("[]")):
        for way in ways:
            try:
                status = way(address, int(port), path)
            except (OSError, http.client.HTTPException) as error:
                reasons.append(f"{address} port {port}: {error}")
            else:
                if status == http.client.OK:
                    return
                reasons.append(f"{address} port {port}: answered {status}")
    raise HealthcheckFailed("not healthy: " + "; ".join(dict.fromkeys(reasons)))


def addresses(host: str) -> Sequence[str]:
    """Where to ask a listener on `host`: over loopback when it listens everywhere."""
    if host == "::":
        return LOOPBACK[::-1]
    return LOOPBACK if host in EVERYWHERE else (host,)


def _plain(address: str, port: int, path: str) -> int:
    return _status(http.client.HTTPConnection(address, port, timeout=TIMEOUT_SECONDS), path)


def _over_tls(address: str, port: int, path: str) -> int:
    """A demand for a client's certificate, which we have not, is an answer as well: the loop turns."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # the certificate is for the name that others use
    context.verify_mode = ssl.CERT_NONE
    connection = http.client.HTTPSConnection(address, port, timeout=TIMEOUT_SECONDS, context=context)
    try:
        connection.connect()
    except ssl.SSLError as error:
        if "ALERT" in error.reason:
            return int(http.client.OK)
        raise
    try:
        return _status(connection, path)
    except (ssl.SSLError, ConnectionError):
        return int(http.client.OK)


def _status(connection: http.client.HTTPConnection, path: str) -> int:
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()
