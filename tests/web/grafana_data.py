"""npm's `@grafana/data`, in a node process: it reads our answers as Grafana's panels do."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

SOURCES = Path(__file__).parent / "javascript"
INSTALL_SECONDS = 300
READ_SECONDS = 60
# Scripts of packages don't run; a lock file would name the registry that it was made with.
INSTALL = ("npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts", "--legacy-peer-deps")


@dataclass(frozen=True)
class Field:
    """A column of a data frame, or a series of joined ones."""

    name: str
    type: str
    unit: str | None
    values: list[Any]


@dataclass(frozen=True)
class Frame:
    """One entry of an answer as a data frame."""

    name: str | None
    ref_id: str | None
    notices: list[str]
    fields: list[Field]


@dataclass(frozen=True)
class Read:
    """An answer as Grafana sees it: a frame an entry, and their outer join, whose first field is the time."""

    frames: list[Frame]
    joined: list[Field]


class GrafanaData:
    """The installed library."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def read(self, answer: bytes) -> Read:
        """Read the body of an answer of `/grafana/query`."""
        read = self.run(SOURCES / "read_answer.cjs", answer)
        frames = [
            Frame(each["name"], each["refId"], each["notices"], [Field(**field) for field in each["fields"]])
            for each in read["frames"]
        ]
        return Read(frames, [Field(**field) for field in read["joined"] or ()])

    def run(self, script: Path, given: bytes) -> Any:
        """What a script that uses the library prints as JSON, when it is given that on stdin."""
        run = subprocess.run(
            ["node", script],
            input=given,
            env={**os.environ, "NODE_PATH": str(self._directory / "node_modules")},
            capture_output=True,
            timeout=READ_SECONDS,
            check=False,
        )
        assert run.returncode == 0, run.stderr.decode()
        return json.loads(run.stdout)


def install() -> GrafanaData:
    """The library, installed once into the environment that runs the tests, and anew when its versions change."""
    manifest = SOURCES / "package.json"
    directory = Path(sys.prefix) / f"javascript-{hashlib.sha256(manifest.read_bytes()).hexdigest()[:12]}"
    if not directory.exists():
        with tempfile.TemporaryDirectory(dir=sys.prefix) as fresh:
            target = Path(fresh) / "installed"
            target.mkdir()
            shutil.copy(manifest, target)
            run = subprocess.run(INSTALL, cwd=target, capture_output=True, timeout=INSTALL_SECONDS, check=False)
            if run.returncode:
                pytest.fail(f"npm could not install {manifest}: {run.stderr.decode()[-2000:]}")
            target.rename(directory)
    return GrafanaData(directory)
