"""The listening sockets: where they are, and the server behind them."""

from __future__ import annotations

import asyncio
import errno
import re
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass

from aiohttp import web

from exporter.config import LISTEN_ADDRESS
from exporter.errors import ConfigError
from exporter.web.keys import PREFIX
from exporter.web.protocol_log import ProtocolLog

# Granted twice at the worst: to an answer that is under way, and to a client that does not take it.
SHUTDOWN_SECONDS = 3.0
BACKLOG = 128
# Cookies pile up behind a shared host name; a browser sends up to 16,000 bytes of them without complaint.
MAX_HEADER_BYTES = 16_384
MAX_HEADERS = 128
_FAMILY_IS_MISSING = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """A host to listen on (empty: every address of every family) and a port (0: any free one)."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_listen_address(text: str) -> ListenAddress:
    """`:9480`, `127.0.0.1:9480`, `localhost:9480` or `[::1]:9480`. Raises `ConfigError`."""
    if not re.fullmatch(LISTEN_ADDRESS, text):
        expected = 'expected "host:port" such as ":9480" or "[::1]:9480", the port from 0 to 65535'
        raise ConfigError([f'web.listen_address: {expected}, got "{text}"'])
    host, _, port = text.rpartition(":")
    return ListenAddress(host.strip("[]"), int(port))


class Listener:
    """A running server. `urls` are what it can be reached by, with the route prefix and without a slash at the end."""

    def __init__(self, runner: web.AppRunner, sockets: Sequence[socket.socket], authority: str) -> None:
        self._runner = runner
        self._sockets = sockets
        self._accepting: list[socket.socket] = []
        self._authority = authority
        self.urls: tuple[str, ...] = ()

    async def serve(self, context: ssl.SSLContext | None) -> None:
        """Accept connections from now on with TLS by `context`, or without TLS.

        The sockets stay open meanwhile and the connections already accepted go on: nobody is turned away. Raises
        `ConfigError` when the system has no descriptors left; all stays as it was then. One call at a time.
        """
        before, were_accepting = self._runner.sites, self._accepting
        self._accepting = []
        try:
            for bound in self._sockets:
                self._accepting.append(bound.dup())
                await web.SockSite(self._runner, self._accepting[-1], ssl_context=context, backlog=BACKLOG).start()
        except OSError as error:
            self._accepting = were_accepting
            for site in self._runner.sites - before:
                await site.stop()
            raise ConfigError([f"web.config.file: cannot be put in force: {error.strerror or error}"]) from error
        # What asyncio has accepted but not yet handed over when its server closes is forgotten, and that client waits
        # for ever: so the old ones stop accepting first, and a turn of the loop hands over what they have.
        for accepting in were_accepting:
            asyncio.get_running_loop().remove_reader(accepting)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        for site in before:
            await site.stop()
        self.urls = (f"{'https' if context else 'http'}://{self._authority}",)

    async def stop(self) -> None:
        """Close the listener, finish the answers under way for at most 3 s, close every connection."""
        for bound in self._sockets:
            bound.close()
        await self._runner.cleanup()


async def start_listening(
    app: web.Application, address: ListenAddress, context: ssl.SSLContext | None = None
) -> Listener:
    """Serve `app`, made by `create_app`, on `address`. Raises `ConfigError` when it cannot be bound."""
    sockets = bind(address)
    # No access log: probes and scrapes would fill it. What fails is logged where it is answered.
    runner = web.AppRunner(
        app,
        access_log=None,
        logger=ProtocolLog(),
        shutdown_timeout=SHUTDOWN_SECONDS,
        handler_cancellation=True,  # a client that hangs up leaves no query running
        max_line_size=MAX_HEADER_BYTES,
        max_field_size=MAX_HEADER_BYTES,
        max_headers=MAX_HEADERS,
    )
    await runner.setup()
    shown = ListenAddress(address.host or "localhost", sockets[0].getsockname()[1])
    listener = Listener(runner, sockets, f"{shown}{app[PREFIX]}")
    await listener.serve(context)
    return listener


def bind(address: ListenAddress) -> list[socket.socket]:
    """Listening sockets for `address`, all on one port. Raises `ConfigError`."""
    try:
        return [_bind_everywhere(address.port)] if not address.host else _bind_host(address)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigError([f'web.listen_address: cannot listen on "{address}": {reason}']) from error


def _bind_everywhere(port: int) -> socket.socket:
    """One socket for both families: one port even where any free one is asked for."""
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(("", port), family=socket.AF_INET6, backlog=BACKLOG, dualstack_ipv6=True)
        except OSError as error:
            if error.errno not in _FAMILY_IS_MISSING:
                raise
    return socket.create_server(("", port), backlog=BACKLOG)


def _bind_host(address: ListenAddress) -> list[socket.socket]:
    """One socket for each address of the host. An address of a family that this machine lacks is left out."""
    sockets: list[socket.socket] = []
    missing: OSError | None = None
    found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    for family, _, _, _, (host, port, *scope) in dict.fromkeys(found):
        chosen = sockets[0].getsockname()[1] if sockets else port
        try:
            sockets.append(socket.create_server((host, chosen, *scope), family=family, backlog=BACKLOG))
        except OSError as error:
            if error.errno not in _FAMILY_IS_MISSING:
                for bound in sockets:
                    bound.close()
                raise
            missing = error
    if not sockets:
        raise missing or OSError(errno.EADDRNOTAVAIL, "the name has no address")
    return sockets
