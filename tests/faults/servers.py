"""Servers that a test may stop, freeze and fail over: none of them is shared with another test."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import asyncpg

from exporter.demo.postgres import EmbeddedPostgres, _spawn
from tests.sources import WINDMILL_SCHEMA

# A crash must lose nothing that was committed; a small server starts sooner.
OPTIONS = {"synchronous_commit": "on", "shared_buffers": "16MB", "max_connections": "20"}


class Replica(EmbeddedPostgres):
    """A hot standby that streams from `primary`."""

    def __init__(self, primary: EmbeddedPostgres) -> None:
        super().__init__(options=OPTIONS)
        self._primary = primary

    def _run_initdb(self) -> None:
        flags = ["--write-recovery-conf", "--checkpoint=fast", "--no-sync", "--wal-method=stream"]
        place = [f"--dbname=host=127.0.0.1 port={self._primary.port} user=postgres"]
        log_path = self.directory / "basebackup.log"
        with log_path.open("wb") as log:
            command = [str(self._binaries / "pg_basebackup"), "-D", str(self.directory / "data"), *place, *flags]
            assert _spawn(command, output=log).wait() == 0, log_path.read_text()


async def load_windmill(server: EmbeddedPostgres) -> str:
    """Windmill's tables in the server's own database; its URL."""
    connection = await asyncpg.connect(server.url())
    await connection.execute(WINDMILL_SCHEMA.read_text())
    await connection.close()
    return server.url()


@contextmanager
def own_server(options: Mapping[str, str] | None = None) -> Iterator[EmbeddedPostgres]:
    """A small server for one test."""
    with EmbeddedPostgres(options={**OPTIONS, **(options or {})}) as server:
        yield server


def processes_of(server: EmbeddedPostgres) -> list[int]:
    """The postmaster and all its children."""
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text()
    return [server.pid, *map(int, children.split())]


@contextmanager
def frozen(server: EmbeddedPostgres) -> Iterator[None]:
    """Every process of the server stands still: connections are accepted by the kernel, and nobody answers."""
    stopped = processes_of(server)
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
