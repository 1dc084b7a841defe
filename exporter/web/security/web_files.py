"""The web config file and the files that it names, on the disk: read together, and read again when one changed."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from exporter.config_loading import read_config_file
from exporter.web.security.tls import load_context
from exporter.web.security.web_config import WebServerConfig, parse_web_config

Identity = tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class WebSettings:
    """What a web config file asks for, ready to be used. Without a file: neither TLS nor users."""

    config: WebServerConfig = field(default_factory=WebServerConfig)
    context: ssl.SSLContext | None = None


class WebFiles:
    """The files at `path` (empty: none). Reading and looking block."""

    def __init__(self, path: str) -> None:
        self._path = Path(path) if path else None
        self._named: Sequence[Path] = ()
        self._read: Sequence[Identity] = ()
        self._looked_at: Sequence[Identity] = ()

    @property
    def is_configured(self) -> bool:
        """Whether there is a file at all."""
        return self._path is not None

    def load(self) -> WebSettings:
        """Read everything. Raises `ConfigError` with every problem; that attempt counts for `changed` as well."""
        if self._path is None:
            return WebSettings()
        # Looked at before it is read: what changes meanwhile is noticed the next time.
        identity = _identity(self._path)
        self._read = [identity, *map(_identity, self._named)]
        file = read_config_file(self._path)
        config = parse_web_config(file.name, file.content)
        self._named = config.tls.files if config.tls else ()
        self._read = [identity, *map(_identity, self._named)]
        return WebSettings(config, load_context(config.tls, file.name) if config.tls else None)

    def changed(self) -> bool:
        """Whether a file was written, replaced or made readable since the last `load`, and has stayed so for one look.

        A file that is still being written may look complete without its last section, the one with the users.
        """
        if self._path is None:
            return False
        before, self._looked_at = self._looked_at, [*map(_identity, (self._path, *self._named))]
        return self._looked_at == before != self._read


def _identity(path: Path) -> Identity:
    """What differs after any change; links are followed, since mounted secrets are swapped by one of a directory."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino, found.st_ctime_ns, found.st_size)
