"""The page of the whole product on a real database: what is stored, what is missing, and a database that is frozen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from aiohttp import ClientSession

from exporter.config import Config, FairnessConfig, QueueConfig
from exporter.database.database import Connection
from exporter.fairness.values import FairnessMode
from exporter.queue.values import QueueMode
from tests import roles
from tests.database.proxy import TcpProxy
from tests.database.targets import target_at
from tests.fairness.scene import add_completed, add_running
from tests.product import WAIT_SECONDS, eventually, service, working
from tests.queue.scene import Job, add_jobs
from tests.web.status.scenes import Document

HTML = {"Accept": "text/html"}
WRITING = Config(
    fairness=FairnessConfig(mode=FairnessMode.ENFORCE), queue=QueueConfig(mode=QueueMode.SAMPLE, interval_seconds=1)
)


async def see(url: str) -> Document:
    """The page now."""
    async with ClientSession() as session, session.get(f"{url}/", headers=HTML) as response:
        assert response.status == 200
        return Document(await response.text())


async def seen(url: str, condition: Callable[[Document], bool]) -> Document:
    """The first page for which `condition` holds."""
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            page = await see(url)
            if condition(page):
                return page
            await asyncio.sleep(0.1)


async def lay_out(windmill: Connection) -> None:
    """Somebody to cap, a tag that nobody takes, and the past hour of it."""
    await windmill.execute("INSERT INTO global_settings (name, value) VALUES ('workspace_fairness_enabled', 'true')")
    await add_running(windmill, "noisy", started_ago=60)
    await add_completed(windmill, "noisy", duration_ms=34_000, completed_ago=5)
    await add_completed(windmill, "quiet", duration_ms=1_000, completed_ago=2)
    await add_jobs(windmill, Job(tag="gpu", due=100), number=3)
    await windmill.execute(
        """
        INSERT INTO metrics (id, value, created_at)
        SELECT 'queue_count_gpu', to_jsonb(minutes), now() - make_interval(mins => minutes)
          FROM generate_series(1, 59) AS minutes
        """
    )


async def test_lines_and_transitions_come_from_the_database_while_somebody_looks(
    windmill: Connection, windmill_url: str
) -> None:
    await lay_out(windmill)
    async with service(windmill_url, WRITING) as running:
        await eventually(running.urls[0], working("fairness", "queue"))
        page = await seen(running.urls[0], lambda page: "◆ capped" in page.texts["transitions"])
        assert "noisy holds" in page.texts["h1"]
        assert "noisy" in page.texts["transitions"]
        [line] = page.all("svg", class_="sparkline")
        assert str(line["aria-label"]).startswith("Jobs waiting in the last hour: 59 at the most")
        assert "gpu▲ no worker3" in page.texts["tags"]
        assert "Nothing." in page.texts["collectors"]


async def test_a_role_that_may_not_read_the_audit_log_is_told_what_to_grant(
    windmill: Connection, role: roles.MakeRole
) -> None:
    await lay_out(windmill)
    url = await role(roles.OBSERVE)
    for table in ("audit", "audit_partitioned"):
        columns = "workspace_id, id, timestamp, operation, resource, parameters"
        await windmill.execute(f"REVOKE SELECT ({columns}), SELECT ON {table} FROM {roles.OBSERVE_ROLE}")
    async with service(url, Config(fairness=FairnessConfig(settings_relation=roles.SETTINGS_VIEW))) as running:
        await eventually(running.urls[0], working("fairness", "queue"))
        page = await seen(running.urls[0], lambda page: "this page" in page.texts["collectors"])
        assert "the last transitions cannot be read" in page.texts["collectors"]
        assert f'ON "public"."audit_partitioned" TO "{roles.OBSERVE_ROLE}"' in page.texts["collectors"]
        assert "GRANT SELECT" in page.texts["collectors"]
        assert "1 thing is wrong" in page.texts["now"]
        assert page.all("svg", class_="sparkline"), "the lines do not depend on the audit log"


async def test_the_observing_role_may_read_all_of_the_page(windmill: Connection, role: roles.MakeRole) -> None:
    await lay_out(windmill)
    url = await role(roles.OBSERVE)
    async with service(url, Config(fairness=FairnessConfig(settings_relation=roles.SETTINGS_VIEW))) as running:
        await eventually(running.urls[0], working("fairness", "queue"))
        page = await seen(running.urls[0], lambda page: bool(page.all("svg", class_="sparkline")))
        assert "No cap has begun or ended yet." in page.texts["transitions"]
        assert "Nothing." in page.texts["collectors"]
        assert "Nobody is capped" in page.texts["h1"]


async def test_a_missing_table_is_named_with_its_collector(windmill: Connection, windmill_url: str) -> None:
    await windmill.execute("ALTER TABLE worker_ping RENAME TO gone")
    async with service(windmill_url) as running:
        page = await seen(running.urls[0], lambda page: "▲ failing" in page.texts["collectors"])
        assert "queue: public.worker_ping does not exist" in page.texts["collectors"]
        assert "database.schema" in page.texts["collectors"]
        assert "Not readable: see below what is wrong." in page.texts["tags"]


@pytest.fixture
async def proxy(windmill_url: str) -> AsyncIterator[TcpProxy]:
    async with TcpProxy(target_at(windmill_url).hosts[0].port) as proxy:
        yield proxy


async def test_the_page_comes_and_the_service_stops_while_the_database_is_frozen(
    windmill: Connection, windmill_url: str, proxy: TcpProxy
) -> None:
    """Nobody has looked before: the first read of the past begins on the frozen connections."""
    await lay_out(windmill)
    target = target_at(windmill_url, proxy.port)
    url = f"postgres://{target.user}@127.0.0.1:{proxy.port}/{target.database}"
    async with service(url, WRITING) as running:
        await eventually(running.urls[0], working("fairness", "queue"))
        proxy.freeze()
        async with asyncio.timeout(5):
            page = await see(running.urls[0])
            assert "noisy holds" in page.texts["h1"]
            assert "Not read yet." in page.texts["transitions"]
        async with asyncio.timeout(10):
            await asyncio.gather(*(see(running.urls[0]) for _ in range(20)))
        began = asyncio.get_running_loop().time()
    assert asyncio.get_running_loop().time() - began < 10, "the promise is 10 s in any state"
