"""`windmill-exporter healthcheck`, as Docker runs it beside the product."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from exporter.healthcheck import addresses
from tests.product import Process, process
from tests.sources import PROJECT
from tests.web.certificates import MUTUAL, TLS, USERS, WebConfigFile, issue


@pytest.fixture
def web_config(tmp_path: Path) -> WebConfigFile:
    issue(tmp_path)
    return WebConfigFile(tmp_path)


async def check(product: Process, *flags: str, environment: Mapping[str, str]) -> tuple[int, str]:
    """Exit code and complaint of a health check with the configuration of `product`."""
    port = product.url.split(":")[2].partition("/")[0]
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "exporter", "healthcheck", f"--web.listen-address=:{port}", *flags),
        cwd=PROJECT,
        env={"PATH": os.environ["PATH"], **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(30):
        out, complaint = await child.communicate()
    assert out == b""
    return child.returncode or 0, complaint.decode()


@pytest.mark.parametrize(
    "sections",
    [None, "", USERS, USERS + TLS, USERS + MUTUAL],
    ids=["no file", "empty", "users", "users and TLS", "users and client certificates"],
)
async def test_a_replica_that_lives_is_healthy_with_any_users_and_certificates(
    windmill_url: str, web_config: WebConfigFile, sections: str | None
) -> None:
    flags = () if sections is None else (f"--web.config.file={web_config.write(sections)}",)
    environment = {"DATABASE_URL": windmill_url}
    async with process(*flags, "--web.route-prefix=/windmill", environment=environment) as product:
        assert await check(product, *flags, "--web.route-prefix=windmill/", environment=environment) == (0, "")
        if sections:
            web_config.write("broken")
            assert await check(product, *flags, "--web.route-prefix=windmill/", environment=environment) == (0, "")


async def test_a_replica_that_hangs_or_is_gone_is_not(windmill_url: str) -> None:
    environment = {"DATABASE_URL": windmill_url}
    async with process(environment=environment) as product:
        product.process.send_signal(signal.SIGSTOP)
        code, complaint = await check(product, environment=environment)
        assert code == 1
        assert "timed out" in complaint
        product.process.send_signal(signal.SIGCONT)
        assert await check(product, environment=environment) == (0, "")
        product.process.kill()
        await product.process.wait()
        code, complaint = await check(product, environment=environment)
        assert code == 1
        assert complaint.startswith("not healthy: 127.0.0.1 port ")
        assert "refused" in complaint


async def test_something_else_on_the_port_is_not_healthy() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        product = Process(None, f"http://127.0.0.1:{port}")  # type: ignore[arg-type]
        code, complaint = await check(product, environment={"DATABASE_URL": "postgres://u@h/d"})
    assert code == 1
    assert f"127.0.0.1 port {port}: answered 404" in complaint


async def test_a_configuration_that_cannot_be_used_is_exit_code_1_which_docker_knows() -> None:
    product = Process(None, "http://127.0.0.1:1")  # type: ignore[arg-type]
    code, complaint = await check(product, "--log.level=loud", environment={"DATABASE_URL": "postgres://u@h/d"})
    assert code == 1
    assert "log.level" in complaint


@pytest.mark.parametrize(
    ("host", "asked"),
    [
        ("", ["127.0.0.1", "::1"]),
        ("0.0.0.0", ["127.0.0.1", "::1"]),  # noqa: S104 -- asked about, not listened on
        ("::", ["::1", "127.0.0.1"]),
        ("192.0.2.7", ["192.0.2.7"]),
        ("localhost", ["localhost"]),
    ],
)
def test_a_listener_on_every_address_is_asked_over_loopback(host: str, asked: list[str]) -> None:
    assert list(addresses(host)) == asked


def test_it_imports_little() -> None:
    """It runs every few seconds beside a sidecar of 55 MB."""
    program = (
        "import sys; from exporter.cli import main; main(['healthcheck', '--web.listen-address=127.0.0.1:1']);"
        "heavy = {'aiohttp', 'asyncpg', 'asyncio', 'prometheus_client', 'bcrypt'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    outcome = subprocess.run(
        [sys.executable, "-c", program],
        env={"DATABASE_URL": "postgres://u@h/d"},
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert outcome.stdout == "[]\n"
