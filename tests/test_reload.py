"""Reloading the running service: what takes effect, what stays, what is said about it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import asyncpg
import pytest
from msgspec.structs import replace

from exporter.config import (
    Config,
    DatabaseConfig,
    FairnessConfig,
    FairnessPins,
    MetricsConfig,
    QueueConfig,
    WebConfig,
    WebConfigFile,
)
from exporter.config_loading import LoadedConfig
from exporter.database.database import Connection
from exporter.database.target import Target
from exporter.database.url import parse_url
from exporter.demo.postgres import EmbeddedPostgres
from exporter.errors import ConfigError
from exporter.fairness.values import FairnessMode
from exporter.queue.values import QueueMode
from exporter.service import Service
from tests.conftest import TEMPLATE
from tests.product import eventually, scrape, working
from tests.queue.scene import Job, add_jobs
from tests.test_service import enable, make_noisy
from tests.web.certificates import HASH, PASSWORD, TLS, USERS, client_context, issue, sign_in

SUCCESS = "windmill_exporter_config_last_reload_successful"
SUCCESS_TIME = "windmill_exporter_config_last_reload_success_timestamp_seconds"


@dataclass
class Operator:
    """Somebody who edits configuration and URL, and reloads."""

    url: str
    web: WebConfig = field(default_factory=lambda: WebConfig(listen_address="127.0.0.1:0"))
    problems: tuple[str, ...] = ()
    config: Config = field(default_factory=Config)
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.write()

    def write(self, **sections: object) -> None:
        """Replace the configuration: the defaults, but for these sections."""
        self.config = replace(Config(web=self.web), **sections)

    def reread(self) -> tuple[LoadedConfig, Callable[[], Target]]:
        if self.problems:
            raise ConfigError(self.problems)
        target = parse_url(self.url)
        return LoadedConfig(self.config, self.warnings), lambda: target

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[Service]:
        loaded, target = self.reread()
        service = Service(loaded.config, target, self.reread)
        await service.start()
        try:
            yield service
        finally:
            await service.stop()


@pytest.fixture
def operator(windmill_url: str) -> Operator:
    return Operator(windmill_url)


@pytest.fixture
async def second_url(template_loaded: EmbeddedPostgres) -> AsyncIterator[str]:
    """Another database with Windmill's tables."""
    admin = await asyncpg.connect(template_loaded.url())
    await admin.execute(f"CREATE DATABASE windmill_second TEMPLATE {TEMPLATE}")
    yield template_loaded.url(database="windmill_second")
    await admin.execute("DROP DATABASE windmill_second WITH (FORCE)")
    await admin.close()


async def test_switching_enforcement_off_is_immediate_and_on_again_works(
    windmill: Connection, operator: Operator
) -> None:
    await enable(windmill)
    await make_noisy(windmill)
    enforce = FairnessConfig(mode=FairnessMode.ENFORCE)
    operator.write(fairness=enforce)
    async with operator.running() as service, aiohttp.ClientSession(service.urls[0]) as client:
        await eventually(service.urls[0], lambda page: page.value("windmill_fairness_capped", workspace="noisy") == 1)
        operator.write(fairness=FairnessConfig(mode=FairnessMode.OFF))
        await service.reload()
        async with client.get("/api/admission?pulls=1000") as response:
            body = await response.json()
        assert (body["mode"], body["capped"], all(body["admit"])) == ("off", [], True)
        page = await scrape(service.urls[0])
        assert page.value("windmill_fairness_state", state="off") == 1
        assert page.value("windmill_fairness_capped", workspace="noisy") is None
        assert page.value("windmill_exporter_collector_success", collector="fairness") is None
        assert page.succeeds("queue") or page.value("windmill_exporter_collector_success", collector="queue") == 0
        operator.write(fairness=enforce)
        await service.reload()
        page = await eventually(service.urls[0], working("fairness", "queue"))
        assert page.value("windmill_fairness_capped", workspace="noisy") == 1
    assert await windmill.fetchval("SELECT count(*) FROM audit_partitioned WHERE operation LIKE '%.capped'") == 1


async def test_shadow_holds_nobody_back_from_the_reload_on(windmill: Connection, operator: Operator) -> None:
    """Not only from the next cycle on."""
    await enable(windmill)
    await make_noisy(windmill)
    operator.write(fairness=FairnessConfig(mode=FairnessMode.ENFORCE))
    async with operator.running() as service, aiohttp.ClientSession(service.urls[0]) as client:
        await eventually(service.urls[0], lambda page: page.value("windmill_fairness_capped", workspace="noisy") == 1)
        operator.write()
        await service.reload()
        async with client.get("/api/admission?pulls=1000") as response:
            body = await response.json()
        assert (body["mode"], all(body["admit"])) == ("shadow", True)


async def test_pins_modes_intervals_and_limits_take_effect(windmill: Connection, operator: Operator) -> None:
    for number in range(5):
        await add_jobs(windmill, Job(tag=f"tag-{number}", due=100))
    async with operator.running() as service:
        url = service.urls[0]
        await eventually(url, working("fairness", "queue"))
        assert (await scrape(url)).labelled("windmill_fairness_setting", "name")["max_percent"] == 50
        operator.write(
            fairness=FairnessConfig(settings=FairnessPins(max_percent=70)),
            queue=QueueConfig(mode=QueueMode.SAMPLE, interval_seconds=1),
            metrics=MetricsConfig(max_tags=2),
        )
        await service.reload()
        page = await eventually(url, working("fairness", "queue", "retention"))
        page = await eventually(
            url, lambda page: page.labelled("windmill_fairness_setting", "name").get("max_percent") == 70
        )
        assert len(page.labelled("windmill_queue_waiting_jobs", "tag")) == 2
        assert page.value("windmill_exporter_series_dropped", family="windmill_queue_waiting_jobs") == 3
        await eventually(url, lambda page: page.value("windmill_queue_samples_total", result="stored") == 10)
        operator.write(metrics=MetricsConfig(cluster=False))
        await service.reload()
        assert not (await scrape(url)).labelled("windmill_queue_waiting_jobs", "tag")
    assert await windmill.fetchval("SELECT count(*) FROM metrics") == 10


async def test_what_needs_a_restart_is_named_and_stays(
    windmill: Connection, operator: Operator, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="exporter.service")
    async with operator.running() as service:
        operator.write(
            database=DatabaseConfig(pool_size=7),
            web=WebConfig(listen_address="127.0.0.1:1", route_prefix="/elsewhere", public_metrics=True),
        )
        await service.reload()
        page = await scrape(service.urls[0])
        assert page.value(SUCCESS) == 1
        assert (service.config.database.pool_size, service.config.web.route_prefix) == (2, "")
        assert service.config.web.public_metrics
    told = [record.getMessage() for record in caplog.records if record.name == "exporter.service"]
    assert "changed, but needs a restart: database.pool_size, web.listen_address, web.route_prefix" in told


async def test_a_configuration_with_mistakes_changes_nothing_and_shows_until_it_is_mended(
    operator: Operator, caplog: pytest.LogCaptureFixture
) -> None:
    async with operator.running() as service:
        url = service.urls[0]
        await eventually(url, working("fairness", "queue"))
        before = (await scrape(url)).value(SUCCESS_TIME)
        running = service.config
        operator.problems = ("metrics.max_tags: expected an integer", "log.level: expected one of")
        with pytest.raises(ConfigError):
            await service.reload()
        page = await scrape(url)
        assert (page.value(SUCCESS), page.value(SUCCESS_TIME)) == (0, before)
        assert service.config is running
        operator.problems = ()
        await service.reload()
        page = await scrape(url)
        assert page.value(SUCCESS) == 1
        assert page.value(SUCCESS_TIME) != before
    told = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert told == [
        "reload failed, the old configuration stays: metrics.max_tags: expected an integer; log.level: expected one of"
    ]


async def test_a_url_that_is_none_changes_nothing(operator: Operator) -> None:
    async with operator.running() as service:
        good, operator.url = operator.url, "mysql://somewhere"
        with pytest.raises(ConfigError):
            await service.reload()
        operator.url = good
        await eventually(service.urls[0], working("fairness", "queue"))


async def test_another_database_is_used_from_the_reload_on_and_the_old_one_left(
    windmill: Connection, operator: Operator, second_url: str
) -> None:
    """Field case F13: the file with the URL is read again."""
    await add_jobs(windmill, Job(tag="old", due=100))
    second = await asyncpg.connect(second_url)
    await add_jobs(second, Job(tag="new", due=100))
    operator.write(queue=QueueConfig(interval_seconds=1))
    async with operator.running() as service:
        url = service.urls[0]
        await eventually(url, lambda page: page.value("windmill_queue_waiting_jobs", tag="old") == 1)
        operator.url = second_url
        await service.reload()
        page = await eventually(url, lambda page: page.value("windmill_queue_waiting_jobs", tag="new") == 1)
        assert page.value("windmill_queue_waiting_jobs", tag="old") is None
        sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND application_name LIKE 'windmill-exp%'"
        left = await windmill.fetchval("SELECT current_database()")
        async with asyncio.timeout(10):
            while await windmill.fetchval(sessions, left):  # noqa: ASYNC110 -- the server has no event for us
                await asyncio.sleep(0.05)
    await second.close()


async def test_users_and_tls_come_by_reload_too(operator: Operator, tmp_path: Path) -> None:
    issue(tmp_path)
    path = tmp_path / "web.yml"
    path.write_text(USERS + TLS)
    async with operator.running() as service:
        plain = service.urls[0]
        operator.web = WebConfig(listen_address="127.0.0.1:0", config=WebConfigFile(file=str(path)))
        operator.write()
        await service.reload()
        assert service.urls[0] == plain.replace("http:", "https:")
        connector = aiohttp.TCPConnector(ssl=client_context())
        async with aiohttp.ClientSession(service.urls[0], connector=connector) as client:
            async with client.get("/metrics") as response:
                assert response.status == 401
            async with client.get("/metrics", headers=sign_in()) as response:
                assert response.status == 200
        path.write_text("basic_auth_users: {alice: hunter2}")
        with pytest.raises(ConfigError, match="expected a bcrypt hash"):
            await service.reload()
        assert service.urls[0].startswith("https:")


async def test_files_are_watched_without_a_reload(windmill_url: str, tmp_path: Path) -> None:
    path = tmp_path / "web.yml"
    path.write_text("")
    config = Config(web=WebConfig(listen_address="127.0.0.1:0", config=WebConfigFile(file=str(path))))
    target = parse_url(windmill_url)
    service = Service(config, lambda: target, watch_seconds=0.02)
    await service.start()
    try:
        async with aiohttp.ClientSession(service.urls[0]) as client, asyncio.timeout(10):
            path.write_text(f"basic_auth_users: {{alice: {HASH}}}")
            while True:
                async with client.get("/metrics") as response:
                    if response.status == 401:
                        break
                await asyncio.sleep(0.02)
            async with client.get("/metrics", headers=sign_in("alice", PASSWORD)) as response:
                assert response.status == 200
            path.write_text("basic_auth_users: {alice: x}")
            while True:
                async with client.get("/metrics", headers=sign_in("alice", PASSWORD)) as response:
                    if "windmill_exporter_web_config_last_reload_successful 0" in await response.text():
                        break
                await asyncio.sleep(0.02)
    finally:
        await service.stop()


async def test_reload_over_http_needs_to_be_enabled_and_credentials(operator: Operator, tmp_path: Path) -> None:
    path = tmp_path / "web.yml"
    path.write_text(USERS)
    file = WebConfigFile(file=str(path))
    operator.web = WebConfig(listen_address="127.0.0.1:0", config=file)
    operator.write()
    async with operator.running() as service, aiohttp.ClientSession(service.urls[0]) as client:

        async def post(headers: dict[str, str] | None = None) -> int:
            async with client.post("/-/reload", headers=headers) as response:
                return response.status

        assert [await post(), await post(sign_in())] == [401, 403]
        operator.web = WebConfig(listen_address="127.0.0.1:0", config=file, enable_lifecycle=True)
        operator.write()
        await service.reload()
        assert [await post(), await post(sign_in())] == [401, 200]
        operator.problems = ("log.level: expected one of",)
        assert [await post(), await post(sign_in())] == [401, 500]


async def test_many_reloads_at_the_same_time_are_done_in_turn(windmill: Connection, operator: Operator) -> None:
    async with operator.running() as service:
        for mode in (FairnessMode.OFF, FairnessMode.ENFORCE) * 5:
            operator.write(fairness=FairnessConfig(mode=mode))
            await asyncio.gather(*(service.reload() for _ in range(3)))
        await eventually(service.urls[0], working("fairness", "queue"))
        names = [task.get_name() for task in asyncio.all_tasks()]
        assert [names.count(name) for name in ("fairness", "queue", "web_files", "reload")] == [1, 1, 1, 1]


async def test_a_service_that_was_reloaded_still_waits_for_its_end(operator: Operator) -> None:
    async with operator.running() as service:
        stop = asyncio.Event()
        waiting = asyncio.create_task(service.run_until(stop))
        for mode in (FairnessMode.OFF, FairnessMode.SHADOW):
            operator.write(fairness=FairnessConfig(mode=mode))
            await service.reload()
            await asyncio.sleep(0.05)
            assert not waiting.done()
        stop.set()
        assert await waiting


async def test_a_loop_that_ends_by_itself_is_noticed_also_after_a_reload(
    operator: Operator, caplog: pytest.LogCaptureFixture
) -> None:
    async with operator.running() as service:
        waiting = asyncio.create_task(service.run_until(asyncio.Event()))
        operator.write(queue=QueueConfig(interval_seconds=2))
        await service.reload()
        await asyncio.sleep(0.05)

        async def defect() -> None:
            raise RuntimeError("inside")

        service._collecting.append(asyncio.create_task(defect(), name="broken"))
        service._tasks_changed.set()
        assert not await asyncio.wait_for(waiting, 10)
    assert "loop broken ended" in caplog.text


async def test_warnings_of_what_was_read_are_logged(operator: Operator, caplog: pytest.LogCaptureFixture) -> None:
    operator.warnings = ("WINDMILL_EXPORTER_X: unknown variable, ignored",)
    async with operator.running() as service:
        await service.reload()
    assert "WINDMILL_EXPORTER_X: unknown variable, ignored" in caplog.text
