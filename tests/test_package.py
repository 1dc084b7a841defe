"""The wheel carries everything that the product reads at run time."""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from tests.sources import PROJECT

PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of a copy of the sources, built without network."""
    directory = tmp_path_factory.mktemp("wheel")
    sources = directory / "sources"
    tracked = ["pyproject.toml", "README.md", "LICENSE", "exporter"]
    sources.mkdir()
    subprocess.run(["cp", "-R", *(str(PROJECT / name) for name in tracked), str(sources)], check=True)
    subprocess.run(
        [*PIP, "wheel", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", str(directory), str(sources)],
        check=True,
    )
    [built] = directory.glob("*.whl")
    return built


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    package = PROJECT / "exporter"
    wanted = {
        path.relative_to(PROJECT).as_posix()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert any(name.endswith(".sql") for name in wanted)
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert held == wanted


def test_an_installed_wheel_runs_and_reads_its_statements(wheel: Path, tmp_path: Path) -> None:
    """In an environment of its own, from outside the sources; only the dependencies are borrowed."""
    environment = tmp_path / "venv"
    venv.create(environment, symlinks=True, with_pip=False)
    python = environment / "bin" / "python"
    [site] = environment.glob("lib/python*/site-packages")
    subprocess.run(
        [*PIP, "--python", str(python), "install", "--no-deps", "--no-index", str(wheel)],
        check=True,
    )
    borrowed = next(path for path in sys.path if path.endswith("site-packages"))
    program = (
        "import sys; sys.path.append(sys.argv[1]); import exporter; print(exporter.__file__);"
        "from importlib.resources import files;"
        "print((files('exporter.demo') / 'schema' / 'windmill.sql').read_text()[:2])"
    )
    outcome = subprocess.run(
        [str(python), "-c", program, borrowed], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert outcome.stdout.splitlines() == [str(site / "exporter" / "__init__.py"), "--"]
    script = (environment / "bin" / "windmill-exporter").read_text()
    assert "from exporter.cli import main" in script
