"""A real PgBouncer in transaction mode, with the stock settings: it ignores no startup parameter."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PGBOUNCER = "/usr/sbin/pgbouncer"
NOBODY = 65534
START_SECONDS = 10.0

INI = """\
[databases]
* = host=127.0.0.1 port={server_port} user={user}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
auth_file = {directory}/users.txt
pool_mode = {pool_mode}
default_pool_size = {pool_size}
logfile = {directory}/pgbouncer.log
{extra}
"""


@contextmanager
def pgbouncer(
    server_port: int, *, pool_mode: str = "transaction", pool_size: int = 1, user: str = "postgres", extra: str = ""
) -> Iterator[int]:
    """Run PgBouncer in front of the server; yields its port. One server connection per database by default.

    Whoever connects is logged in at the server as `user`.
    """
    directory = Path(tempfile.mkdtemp(prefix="windmill-exporter-bouncer-"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    ini = INI.format(
        server_port=server_port,
        user=user,
        port=port,
        directory=directory,
        pool_mode=pool_mode,
        pool_size=pool_size,
        extra=extra,
    )
    (directory / "pgbouncer.ini").write_text(ini)
    (directory / "users.txt").write_text("")
    command = [PGBOUNCER, "-q", str(directory / "pgbouncer.ini")]
    if os.geteuid() == 0:
        os.chown(directory, NOBODY, NOBODY)
        process = subprocess.Popen(command, user=NOBODY, group=NOBODY, extra_groups=[])
    else:
        process = subprocess.Popen(command)
    try:
        _wait_until_listening(port, process)
        yield port
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        shutil.rmtree(directory, ignore_errors=True)


def _wait_until_listening(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise AssertionError(f"pgbouncer ended with {process.returncode}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise AssertionError("pgbouncer does not listen")
