"""Reads the Dockerfile, and runs its steps in a directory of this machine instead of in an image.

The steps run as they stand, with their two absolute paths moved below a root; the network is replaced by wheels made of
what is installed here, and the base image by a copy of this interpreter.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from dataclasses import dataclass
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.sources import PROJECT

PYTHON_LEFT_OUT = ("site-packages", "test", "idlelib", "tkinter", "config-*", "lib2to3", "turtledemo")


@dataclass(frozen=True)
class Instruction:
    """One instruction: its name, its flags by name, and its words (of the exec form if `is_exec`)."""

    name: str
    flags: dict[str, str]
    words: tuple[str, ...]
    is_exec: bool


@dataclass(frozen=True)
class Stage:
    """One build stage, from its FROM on."""

    name: str
    base: str
    instructions: tuple[Instruction, ...]

    def all(self, name: str) -> list[Instruction]:
        return [instruction for instruction in self.instructions if instruction.name == name]

    def only(self, name: str) -> Instruction:
        [instruction] = self.all(name)
        return instruction


def read_stages() -> list[Stage]:
    """The stages of the Dockerfile in order."""
    text = re.sub(r"^#.*\n", "", (PROJECT / "Dockerfile").read_text(), flags=re.MULTILINE)
    stages: list[Stage] = []
    for line in re.sub(r"\\\n", " ", text).splitlines():
        if not line.strip():
            continue
        name, _, rest = line.strip().partition(" ")
        if name == "FROM":
            base, _, stage = rest.partition(" AS ")
            stages.append(Stage(stage, base, ()))
        else:
            last = stages.pop()
            stages.append(Stage(last.name, last.base, (*last.instructions, _instruction(name, rest.strip()))))
    return stages


def _instruction(name: str, rest: str) -> Instruction:
    flags = {}
    while match := re.match(r"--([\w-]+)=(\S+)\s+", rest):
        flags[match[1]] = match[2]
        rest = rest[match.end() :]
    rest = rest.removeprefix("CMD ").strip() if name == "HEALTHCHECK" else rest
    is_exec = rest.startswith("[")
    return Instruction(name, flags, tuple(json.loads(rest) if is_exec else rest.split()), is_exec)


def build(root: Path) -> tuple[str, ...]:
    """Run every step below `root`, which all may read; what is left is read-only. The entry point's command."""
    _copy_interpreter(root / "base")
    _write_wheels(root / "wheels")
    stage, final = read_stages()
    workdir = stage.only("WORKDIR").words[0]
    [copied] = final.all("COPY")
    [installed] = set(copied.words)

    def moved(word: str) -> str:
        return re.sub(rf"^({workdir}|{installed})(?=/|$)", lambda match: str(root / match[0][1:]), word)

    environment = {
        "PATH": f"{root}/base/bin",
        "LD_LIBRARY_PATH": f"{root}/base/lib",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(root / "wheels"),
        **dict(word.split("=") for instruction in stage.all("ENV") for word in instruction.words),
    }
    Path(moved(workdir)).mkdir()
    for instruction in stage.instructions:
        if instruction.name == "COPY":
            _copy(instruction.words, Path(moved(workdir)))
        elif instruction.name == "RUN":
            command = [moved(word) for word in instruction.words]
            subprocess.run(command, cwd=moved(workdir), env=environment, check=True, stdout=subprocess.DEVNULL)
    for leftover in (moved(workdir), root / "wheels"):
        shutil.rmtree(leftover)  # the last stage has nothing but what it copies
    subprocess.run(["chmod", "-R", "a-w,a+rX", str(root)], check=True)
    return tuple(moved(word) for word in final.only("ENTRYPOINT").words)


def _copy(words: tuple[str, ...], workdir: Path) -> None:
    *sources, target = words
    for source in sources:
        place = workdir / target / (source if target.endswith("/") else "")
        if (PROJECT / source).is_dir():
            shutil.copytree(PROJECT / source, place, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
        else:
            shutil.copy(PROJECT / source, place)


def _copy_interpreter(target: Path) -> None:
    """This interpreter without its packages: the original may lie in a home directory that others cannot enter."""
    base = Path(sys.base_prefix)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    library = Path(sysconfig.get_path("stdlib", vars={"installed_base": str(base)}))
    shutil.copytree(library, target / "lib" / version, ignore=shutil.ignore_patterns(*PYTHON_LEFT_OUT))
    for shared in (base / "lib").glob(f"lib{version}.so*"):
        shutil.copy(shared, target / "lib" / shared.name)
    (target / "bin").mkdir()
    shutil.copy(os.path.realpath(sys.executable), target / "bin" / "python3")


def _write_wheels(target: Path) -> None:
    """Wheels of the build backend and of every dependency, made of what is installed in this environment."""
    target.mkdir()
    wanted = ["setuptools", *tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["dependencies"]]
    done: set[str] = set()
    while wanted:
        requirement = Requirement(wanted.pop())
        name = canonicalize_name(requirement.name)
        if name in done or not (requirement.marker is None or requirement.marker.evaluate({"extra": ""})):
            continue
        done.add(name)
        found = distribution(name)
        _write_wheel(found, target)
        wanted += found.requires or []


def _write_wheel(installed: Distribution, target: Path) -> None:
    tags = re.findall(r"^Tag: (\S+)", installed.read_text("WHEEL") or "", re.MULTILINE)
    parts = (".".join(dict.fromkeys(part)) for part in zip(*(tag.split("-") for tag in tags), strict=True))
    name = re.sub(r"[-_.]+", "_", installed.metadata["Name"])
    files = [file for file in installed.files or [] if ".." not in file.parts and file.suffix != ".pyc"]
    [record] = [file for file in files if file.name == "RECORD" and len(file.parts) == 2]
    with zipfile.ZipFile(target / f"{name}-{installed.version}-{'-'.join(parts)}.whl", "w") as wheel:
        for file in files:
            if file != record:
                wheel.write(str(file.locate()), str(file))
        wheel.writestr(str(record), "".join(f'"{file}",,\n' for file in files))
