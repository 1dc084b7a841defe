"""The product as a process: start, stop, and a database that is not there yet."""

from __future__ import annotations

import asyncio
import signal
import socket
from pathlib import Path

import aiohttp
import pytest

from exporter.database.database import Connection
from exporter.demo.postgres import EmbeddedPostgres
from tests.product import Process, eventually, process, scrape, working


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_cleanly_and_leaves_no_session(
    windmill: Connection, windmill_url: str, number: signal.Signals
) -> None:
    async with process(environment={"DATABASE_URL": windmill_url}) as product:
        await eventually(product.url, working("fairness", "queue"))
        product.process.send_signal(number)
        assert await asyncio.wait_for(product.process.wait(), 10) == 0
    assert "Traceback" not in product.log
    sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    assert await windmill.fetchval(sessions) == 0


async def test_it_lives_and_says_so_before_the_database_does(template_loaded: EmbeddedPostgres) -> None:
    """Field cases F82 and F92: no exit, collector series from the first scrape on, one line a change."""
    url = f"postgresql://postgres@127.0.0.1:{unused_port()}/windmill?sslmode=disable"
    async with process(environment={"DATABASE_URL": url}) as product:
        page = await scrape(product.url)
        assert page.value("windmill_exporter_up") == 0
        for collector in ("fairness", "queue"):
            assert page.value("windmill_exporter_collector_success", collector=collector) == 0
            assert page.value("windmill_exporter_collector_last_success_timestamp_seconds", collector=collector) == 0
        async with aiohttp.ClientSession() as session:
            for path, status in (("/-/healthy", 200), ("/-/ready", 200), ("/metrics", 200)):
                async with session.get(product.url + path) as response:
                    assert response.status == status
        await asyncio.sleep(4)
        assert product.process.returncode is None
        assert len([line for line in product.lines if "level=warning" in line]) == 1


@pytest.mark.may_block("starts a server of its own; the product runs elsewhere")
async def test_a_database_that_appears_later_is_used_without_a_restart(tmp_path: object) -> None:
    with EmbeddedPostgres() as server:
        server.stop()
        async with process(environment={"DATABASE_URL": server.url()}) as product:
            await eventually(product.url, lambda page: page.value("windmill_exporter_up") == 0)
            server.start()
            await eventually(product.url, lambda page: page.value("windmill_exporter_up") == 1)


async def test_a_wrong_url_ends_it_with_a_located_message_and_no_password() -> None:
    async with process(environment={"DATABASE_URL": "postgresql://u:hunter2@h/db?sslmod=require"}) as product:
        assert await product.process.wait() == 2
    assert "hunter2" not in product.log
    assert "Traceback" not in product.log
    assert "sslmode" in product.log


async def test_it_needs_neither_a_home_nor_what_other_clients_left_in_the_environment(windmill_url: str) -> None:
    """Field case F88."""
    strange = {
        "PROMETHEUS_MULTIPROC_DIR": "/missing/folder",
        "PGHOST": "192.0.2.1",
        "PGPASSWORD": "hunter2",
        "PGOPTIONS": "-c statement_timeout=1",
        "PGSSLROOTCERT": "/missing/file",
        "HTTP_PROXY": "http://192.0.2.1:1",
        "HTTPS_PROXY": "http://192.0.2.1:1",
        "HOME": "/nonexistent",
    }
    async with process(environment={"DATABASE_URL": windmill_url, **strange}) as product:
        await eventually(product.url, working("fairness", "queue"))
    assert "hunter2" not in product.log
    assert product.log.count("PGHOST") == 1


async def logged(product: Process, text: str) -> str:
    """The first line of the log that holds `text`."""
    async with asyncio.timeout(20):
        while True:
            for line in product.lines:
                if text in line:
                    return line
            await asyncio.sleep(0.05)


async def test_sighup_reloads_the_file_and_a_bad_one_changes_nothing(windmill_url: str, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("queue: {mode: 'off'}\n")
    async with process(f"--config.file={path}", environment={"DATABASE_URL": windmill_url}) as product:
        await eventually(product.url, working("fairness"))
        path.write_text("log: {format: json}\nqueue: {mode: observe}\nweb: {route_prefix: /new}\n")
        product.process.send_signal(signal.SIGHUP)
        page = await eventually(product.url, working("fairness", "queue"))
        assert page.value("windmill_exporter_config_last_reload_successful") == 1
        assert '"level": "warning"' in await logged(product, "changed, but needs a restart: web.route_prefix")
        assert "log.format" in await logged(product, "configuration reloaded")
        path.write_text("log: {level: loud}\nqueue: {mood: observe}\n")
        product.process.send_signal(signal.SIGHUP)
        failed = "windmill_exporter_config_last_reload_successful"
        page = await eventually(product.url, lambda page: page.value(failed) == 0)
        assert page.succeeds("queue")
        line = await logged(product, "reload failed, the old configuration stays")
        assert "queue.mood: unknown key" in line
        assert "log.level: expected one of" in line
        path.write_text("log: {level: error}\n")
        product.process.send_signal(signal.SIGHUP)
        await eventually(product.url, lambda page: page.value(failed) == 1)
        product.process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(product.process.wait(), 10) == 0
    assert "stopped" not in product.log
    assert "Traceback" not in product.log


async def test_a_web_config_that_cannot_be_used_ends_the_start_with_exit_code_2(tmp_path: Path) -> None:
    path = tmp_path / "web.yml"
    path.write_text("tls_server_config: {cert_file: gone.crt, key_file: gone.key}\n")
    environment = {"DATABASE_URL": "postgres://u@192.0.2.1/d"}
    async with process(f"--web.config.file={path}", environment=environment) as product:
        assert await product.process.wait() == 2
    assert f"{path}: tls_server_config.cert_file: {tmp_path}/gone.crt cannot be read" in product.log
    assert f"{path}: tls_server_config.key_file: {tmp_path}/gone.key cannot be read" in product.log
    assert "Traceback" not in product.log
