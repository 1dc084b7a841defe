"""A real Prometheus and its API."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import ClientError, ClientSession

from tests.requirements import find_program


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@asynccontextmanager
async def prometheus(folder: Path, configuration: str) -> AsyncIterator[ClientSession]:
    """A running Prometheus with that configuration, a client of its API."""
    config = folder / "prometheus.yml"
    config.write_text(configuration)
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        str(find_program("prometheus")),
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=error",
    )
    try:
        async with ClientSession(f"http://127.0.0.1:{port}") as session:
            yield session
    finally:
        process.terminate()
        await process.wait()


async def query(session: ClientSession, expression: str) -> list[Any]:
    """The series of an instant query; none while Prometheus is still starting."""
    try:
        async with session.get("/api/v1/query", params={"query": expression}) as response:
            return list(json.loads(await response.text())["data"]["result"])
    except (ClientError, ValueError, KeyError):
        return []


async def first_answer(session: ClientSession, expression: str) -> list[Any]:
    """The series of an instant query, as soon as there are any."""
    for _ in range(150):
        if series := await query(session, expression):
            return series
        await asyncio.sleep(0.2)
    raise AssertionError(f"no answer to {expression} in 30 s")
