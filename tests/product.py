"""The whole product as tests run it: in this process, or as a process of its own."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from exporter.config import Config
from exporter.database.url import parse_url
from exporter.service import Service
from tests.sources import PROJECT

WAIT_SECONDS = 20.0
LISTENING = re.compile(r"msg=listening url=(\S+)")

Samples = Mapping[tuple[str, frozenset[tuple[str, str]]], float]


@dataclass
class Scrape:
    """One metrics page, looked up by name and labels."""

    samples: Samples

    def value(self, name: str, **labels: str) -> float | None:
        """The sample's value, or None when it is absent."""
        return self.samples.get((name, frozenset(labels.items())))

    def labelled(self, name: str, label: str) -> dict[str, float]:
        """Every sample of a family by the value of one label."""
        return {
            dict(labels)[label]: value for (found, labels), value in self.samples.items() if found == name and labels
        }

    def succeeds(self, collector: str) -> bool:
        """Whether a collector's success series is 1."""
        return self.value("windmill_exporter_collector_success", collector=collector) == 1


def parse_page(text: str) -> Scrape:
    """A page in the text format."""
    families = text_string_to_metric_families(text)
    return Scrape(
        {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in families
            for sample in family.samples
        }
    )


async def scrape(url: str) -> Scrape:
    """Fetch and parse `/metrics`, which must answer 200."""
    async with aiohttp.ClientSession() as session, session.get(f"{url}/metrics") as response:
        assert response.status == 200
        return parse_page(await response.text())


async def eventually(url: str, condition: Callable[[Scrape], bool]) -> Scrape:
    """The first scrape for which `condition` holds."""
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            page = await scrape(url)
            if condition(page):
                return page
            await asyncio.sleep(0.1)


def working(*collectors: str) -> Callable[[Scrape], bool]:
    """A condition: all these collectors succeed."""
    return lambda page: all(page.succeeds(name) for name in collectors)


@asynccontextmanager
async def service(database_url: str, config: Config | None = None) -> AsyncIterator[Service]:
    """The product in this process, on a free port."""
    config = config or Config()
    config = replace(config, web=replace(config.web, listen_address="127.0.0.1:0"))
    target = parse_url(database_url)
    running = Service(config, lambda: target)
    await running.start()
    try:
        yield running
    finally:
        await running.stop()


@dataclass
class Process:
    """The product as a process: its URL once it listens, and what it logged so far."""

    process: asyncio.subprocess.Process
    url: str = ""
    lines: list[str] = field(default_factory=list)

    @property
    def log(self) -> str:
        """Everything on stderr so far."""
        return "\n".join(self.lines)


@asynccontextmanager
async def process(
    *flags: str,
    environment: Mapping[str, str],
    command: Sequence[str] = (sys.executable, "-m", "exporter"),
    uid: int | None = None,
) -> AsyncIterator[Process]:
    """`command` with nothing of this process's environment but PATH; as `uid`, without groups, where that is given."""
    child = await asyncio.create_subprocess_exec(
        *command,
        "--web.listen-address=127.0.0.1:0",
        *flags,
        cwd=PROJECT if uid is None else "/",
        env={"PATH": os.environ["PATH"], **environment},
        user=uid,
        group=uid,
        extra_groups=None if uid is None else [],
        stderr=asyncio.subprocess.PIPE,
    )
    started = Process(child)
    listening = asyncio.Event()

    async def read_log() -> None:
        assert child.stderr is not None
        async for line in child.stderr:
            started.lines.append(line.decode().rstrip())
            if found := LISTENING.search(started.lines[-1]):
                started.url = found[1]
                listening.set()
        listening.set()

    reader = asyncio.create_task(read_log())
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            await listening.wait()
        yield started
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()
        await reader
