"""Pure: paths as patterns that match with and without a trailing slash and with doubled slashes, without a redirect."""

from __future__ import annotations

import re
from itertools import count

from exporter.config import ROUTE_PREFIX
from exporter.errors import ConfigError


def parse_route_prefix(text: str) -> str:
    """The prefix of every path: empty, or with a slash in front and none at the end. Raises `ConfigError`."""
    if not re.fullmatch(ROUTE_PREFIX, text):
        expected = 'expected a path of letters, digits, ".", "_", "~" and "-" such as "/exporter"'
        raise ConfigError([f'web.route_prefix: {expected}, got "{text}"'])
    segments = text.strip("/")
    return f"/{segments}" if segments else ""


def path_pattern(path: str) -> str:
    """The pattern of aiohttp's router for `path`, in which each slash stands for one or more, and the last for any."""
    numbers = count()
    segments = [f"/{{slashes{next(numbers)}:/*}}{segment}" for segment in path.split("/") if segment]
    return "".join(segments) + f"{{slashes{next(numbers)}:/*}}" if segments else "/{slashes:/*}"
