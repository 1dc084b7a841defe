"""SIGTERM in every state: exit code 0 in time, whatever the database and the clients do."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from exporter.database.database import Connection
from tests.product import Process, eventually, process, scrape, working
from tests.queue.scene import Job, add_jobs
from tests.sources import PROJECT
from tests.web.certificates import TLS, issue

# The promise is 3 s when idle and 10 s in any state; the rest is for machines that have a lot to do.
IDLE_SECONDS = 5.0
ANY_SECONDS = 13.0

SESSIONS = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'windmill-e%'"
WAITING_FOR_A_LOCK = f"{SESSIONS} AND wait_event_type = 'Lock'"


async def stop(product: Process, seconds: float) -> None:
    """Send SIGTERM and expect a clean end."""
    product.process.send_signal(signal.SIGTERM)
    async with asyncio.timeout(seconds):
        assert await product.process.wait() == 0
    assert "Traceback" not in product.log
    assert "level=critical" not in product.log


async def until(windmill: Connection, query: str, found: Callable[[int], bool]) -> None:
    """Wait until `query` finds as many rows."""
    async with asyncio.timeout(15):
        while not found(len(await windmill.fetch(query))):
            await asyncio.sleep(0.05)
            # Within a transaction pg_stat_activity is read once and remembered.
            await windmill.execute("SELECT pg_stat_clear_snapshot()")


async def test_idle_it_ends_at_once_and_leaves_no_session(windmill: Connection, windmill_url: str) -> None:
    async with process(environment={"DATABASE_URL": windmill_url}) as product:
        await eventually(product.url, working("fairness", "queue"))
        await stop(product, IDLE_SECONDS)
    await until(windmill, SESSIONS, lambda number: number == 0)


async def test_before_the_first_connection_it_ends_at_once() -> None:
    """An address that never answers: the attempt to connect would take its own deadline."""
    url = "postgresql://postgres@192.0.2.1:5432/windmill?sslmode=disable"
    async with process("--database.connect-timeout-seconds=60", environment={"DATABASE_URL": url}) as product:
        await scrape(product.url)
        await stop(product, IDLE_SECONDS)


async def test_a_frozen_database_does_not_keep_it(windmill: Connection, windmill_url: str) -> None:
    flags = ("--queue.interval-seconds=1", "--database.statement-timeout-seconds=60")
    async with process(*flags, environment={"DATABASE_URL": windmill_url}) as product:
        await eventually(product.url, working("fairness", "queue"))
        frozen = [row["pid"] for row in await windmill.fetch(SESSIONS)]
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(2)
            await stop(product, ANY_SECONDS)
        finally:
            for pid in frozen:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)


async def test_a_locked_table_does_not_keep_it_and_its_sessions_go(windmill: Connection, windmill_url: str) -> None:
    """Field case F25."""
    flags = ("--database.lock-timeout-seconds=60", "--database.statement-timeout-seconds=60")
    async with process(*flags, environment={"DATABASE_URL": windmill_url}) as product:
        await scrape(product.url)
        async with windmill.transaction():
            await windmill.execute("LOCK TABLE v2_job_queue IN ACCESS EXCLUSIVE MODE")
            await until(windmill, WAITING_FOR_A_LOCK, lambda number: number > 0)
            await stop(product, ANY_SECONDS)
    await until(windmill, SESSIONS, lambda number: number == 0)


@contextlib.asynccontextmanager
async def client_that(product: Process, sends: bytes) -> AsyncIterator[None]:
    """A client that sends something, reads nothing, and stays."""
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(client, ("127.0.0.1", int(product.url.rpartition(":")[2])))
        await loop.sock_sendall(client, sends)
        await asyncio.sleep(0.5)
        yield


REQUESTS = {
    "takes no answer": b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 200,
    "is half through its request": b"GET /metrics HTTP/1.1\r\nHost: x\r\nCookie: a",
    "is half through its body": b"POST /-/reload HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nabc",
    "says nothing": b"",
}


@pytest.mark.parametrize("sends", REQUESTS.values(), ids=REQUESTS)
async def test_a_client_that_stalls_does_not_keep_it(windmill: Connection, windmill_url: str, sends: bytes) -> None:
    for number in range(400):
        await add_jobs(windmill, Job(tag=f"a-tag-with-a-long-name-{number}", due=100))
    async with process(environment={"DATABASE_URL": windmill_url}) as product:
        await eventually(product.url, working("fairness", "queue"))
        async with client_that(product, sends):
            await stop(product, ANY_SECONDS)


async def test_a_client_half_through_its_tls_handshake_does_not_keep_it(windmill_url: str, tmp_path: Path) -> None:
    issue(tmp_path)
    (tmp_path / "web.yml").write_text(TLS)
    flag = f"--web.config.file={tmp_path / 'web.yml'}"
    started = process(flag, environment={"DATABASE_URL": windmill_url})
    async with started as product, client_that(product, b"\x16\x03\x01\x02\x00"):
        await stop(product, ANY_SECONDS)


async def test_a_name_server_that_does_not_answer_does_not_keep_it() -> None:
    """The system looks a name up in a thread, which nothing can interrupt and the interpreter would wait for."""
    program = (
        "import socket, sys, time\n"
        "socket.getaddrinfo = lambda *_, **__: time.sleep(60)\n"
        "from exporter.cli import main\n"
        "sys.exit(main(['--web.listen-address=:0']))\n"
    )
    environment = {"PATH": os.environ["PATH"], "DATABASE_URL": "postgres://user@db.example/windmill"}
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, cwd=PROJECT, env=environment, stderr=asyncio.subprocess.PIPE
    )
    assert child.stderr is not None
    assert b"listening" in await child.stderr.readline()
    began = time.monotonic()
    await asyncio.sleep(0.5)
    child.send_signal(signal.SIGTERM)
    async with asyncio.timeout(ANY_SECONDS):
        log = (await child.stderr.read()).decode()
        assert await child.wait() == 0
    assert "stopped without waiting" in log
    assert time.monotonic() - began > 5
