"""PostgreSQL servers in states that the shared test server cannot be in."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from exporter.demo.postgres import START_SECONDS, EmbeddedPostgres


class Standby(EmbeddedPostgres):
    """A server that waits for the log of a primary that never comes; `hot_standby=off` answers "not now"."""

    def start(self) -> None:
        (self.directory / "data" / "standby.signal").touch()
        super().start()

    def _wait_until_ready(self) -> None:
        if self._options.get("hot_standby") != "off":
            super()._wait_until_ready()
            return
        status = self.directory / "data" / "postmaster.pid"
        deadline = time.monotonic() + START_SECONDS
        while not (status.exists() and status.read_text().splitlines()[7:8] == ["standby "]):
            assert time.monotonic() < deadline, self.read_log()[-500:]
            time.sleep(0.02)


@contextmanager
def server_with_passwords() -> Iterator[EmbeddedPostgres]:
    """A server that asks everybody but `postgres` for a password, and refuses `tls_only` without TLS.

    It also listens on a unix socket, in its data directory.
    """
    with EmbeddedPostgres(options={"unix_socket_directories": "."}) as server:
        (server.directory / "data" / "pg_hba.conf").write_text(
            "local all postgres trust\n"
            "host all postgres 127.0.0.1/32 trust\n"
            "hostnossl all tls_only 127.0.0.1/32 reject\n"
            "host all all 127.0.0.1/32 scram-sha-256\n"
        )
        server.stop()
        server.start()
        yield server


@asynccontextmanager
async def direct_tls(target_port: int, certificate: Path) -> AsyncIterator[int]:
    """A front that speaks TLS from the first byte, as PostgreSQL 17 and later do, and demands its ALPN."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.set_alpn_protocols(["postgresql"])
    pumps: set[asyncio.Task[None]] = set()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
        except OSError:
            pass
        finally:
            writer.transport.abort()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if writer.get_extra_info("ssl_object").selected_alpn_protocol() != "postgresql":
            writer.transport.abort()
            return
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", target_port)
        pumps.update(
            {asyncio.create_task(pump(reader, server_writer)), asyncio.create_task(pump(server_reader, writer))}
        )

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in pumps:
            task.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
