"""The file that holds the URL (field case F13): named when it cannot be used, its content never shown."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from exporter.database.connect import read_url_file
from exporter.database.url import parse_url
from exporter.errors import ConfigError


def test_a_file_that_cannot_be_used_is_named_without_its_content(tmp_path: Path) -> None:
    empty, binary, broken = tmp_path / "empty", tmp_path / "binary", tmp_path / "broken"
    empty.write_text(" \n")
    binary.write_bytes(b"postgres://u:\xff@h/db")
    broken.write_text("postgres://u:s3cr3t@h:port/db")
    for file, words in ((empty, "is empty"), (binary, "is not UTF-8"), (tmp_path, "cannot be read")):
        with pytest.raises(ConfigError, match=f"^{file}: .* {words}"):
            read_url_file(str(file))
    with pytest.raises(ConfigError) as caught:
        parse_url(read_url_file(str(broken)), str(broken))
    assert str(caught.value) == f"{broken}: the port of host 1 is not a number from 1 to 65535"


def test_the_rights_of_a_file_are_named(tmp_path: Path) -> None:
    """Field case F13: mode 0400 of another uid."""
    file = tmp_path / "url"
    file.write_text("postgres://u:s3cr3t@h/db")
    file.chmod(0o400)
    tmp_path.chmod(0o755)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            if os.geteuid() == 0:
                os.setuid(65532)
            else:
                file.chmod(0)
            read_url_file(str(file))
        except ConfigError as error:
            code = 0 if str(error) == f"{file}: the file of the database URL cannot be read: Permission denied" else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
