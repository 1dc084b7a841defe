"""The generated files are current, and the command says so when they are not."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dashboards.build import generated_files, main, outdated
from tests.dashboards.committed import FOLDER
from tests.sources import PROJECT


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the committed files."""
    for path in generated_files():
        target = tmp_path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(FOLDER / path, target)
    return tmp_path


def test_the_committed_files_are_current() -> None:
    assert outdated(FOLDER) == []


def test_the_command_checks_the_committed_files() -> None:
    command = [sys.executable, "-m", "dashboards.build", "--check"]
    assert subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True).stderr == ""


def test_generating_twice_gives_the_same_files() -> None:
    assert generated_files() == generated_files()


@pytest.mark.parametrize("path", generated_files())
def test_a_file_that_differs_fails_the_check_by_name_and_is_written_anew(
    path: str, copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (copy / path).write_text("edited by hand")
    assert main(["--check"], copy) == 1
    assert capsys.readouterr().err.strip().endswith(f": {path}")
    assert (copy / path).read_text() == "edited by hand"
    assert main([], copy) == 0
    assert main(["--check"], copy) == 0
    assert (copy / path).read_text() == (FOLDER / path).read_text()


def test_a_missing_file_is_made(tmp_path: Path) -> None:
    assert main(["--check"], tmp_path) == 1
    assert main([], tmp_path) == 0
    assert main(["--check"], tmp_path) == 0


def test_a_file_without_a_source_fails_the_check_and_is_removed(copy: Path) -> None:
    (copy / "rules" / "old.yaml").write_text("groups: []")
    assert outdated(copy) == ["rules/old.yaml"]
    assert main([], copy) == 0
    assert not (copy / "rules" / "old.yaml").exists()
