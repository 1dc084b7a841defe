"""Takes the pictures of the status page anew, from the demo: `python -m docs.screenshots`. Needs chromium."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from exporter.demo.load import Load
from exporter.demo.postgres import EmbeddedPostgres
from exporter.demo.session import Rule, session
from tests.web.status.browser import Tab, connected, launched

DIRECTORY = Path(__file__).parent
DATABASE = "screenshots"
SECONDS = 70

# An hour of the past, which a demo of a minute has not: a wave for each tag, up to where the demo begins.
PAST = """
INSERT INTO metrics (id, value, created_at)
SELECT 'queue_count_' || tag,
       to_jsonb(round(size * greatest(0, 0.5 + 0.4 * sin(seconds / length) + 0.12 * sin(seconds / 97.0)))::int),
       now() - make_interval(secs => seconds)
  FROM (VALUES ('bun', 420, 610.0), ('deno', 380, 440.0), ('python3', 450, 900.0), ('gpu', 45, 1500.0))
       AS wave (tag, size, length),
       generate_series(80, 3600, 30) AS seconds
"""


@dataclass(frozen=True, slots=True)
class Picture:
    """One file: a window of so many CSS pixels, in light or dark, with `scale` dots a pixel."""

    name: str
    width: int
    height: int
    scheme: str
    scale: float
    whole: bool


PICTURES = (
    Picture("status-light.png", 1_060, 800, "light", 1.25, whole=True),
    Picture("status-dark.png", 1_060, 800, "dark", 1.25, whole=True),
    Picture("status-phone.png", 360, 760, "light", 1.5, whole=False),
)


async def main() -> None:
    """Run the demo until somebody is capped for a while, and look at its page."""
    with EmbeddedPostgres() as server, tempfile.TemporaryDirectory() as directory, launched(Path(directory)) as browser:
        async with session(server, DATABASE, Rule.WEIGHTED, Load(workers=40), seed=1) as running:
            await asyncio.sleep(SECONDS)
            owner = await asyncpg.connect(server.url(database=DATABASE))
            await owner.execute(PAST)
            await owner.close()
            async with connected(browser) as connection:
                for picture in PICTURES:
                    async with connection.tab() as tab:
                        (DIRECTORY / picture.name).write_bytes(await take(tab, picture, f"{running.service.urls[0]}/"))


async def take(tab: Tab, picture: Picture, url: str) -> bytes:
    """The page as PNG. It is loaded twice: the first look makes the exporter read the lines."""
    await tab.resize(picture.width, picture.height, scale=picture.scale, mobile=picture.width < 500)
    await tab.prefer(picture.scheme)
    await tab.open(url)
    await asyncio.sleep(1)
    await tab.open(url)
    return await tab.screenshot(whole=picture.whole)


if __name__ == "__main__":
    asyncio.run(main())
