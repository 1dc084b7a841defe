"""`POST /-/reload`: read the configuration anew, where that is enabled."""

from __future__ import annotations

from aiohttp import web

from exporter.errors import ConfigError
from exporter.web.answers import error_answer, json_answer
from exporter.web.keys import RELOAD


async def reload(request: web.Request) -> web.Response:
    """200 once the new configuration is in force, 500 with every problem when the old one stays."""
    action = request.app[RELOAD]()
    if action is None:
        return error_answer(403, "disabled", "Reloading over HTTP is disabled; see web.enable_lifecycle.")
    try:
        await action()
    except ConfigError as error:
        problems = "; ".join(error.problems)
        return error_answer(500, "bad_configuration", f"The old configuration stays in force: {problems}")
    return json_answer({"status": "reloaded"})
