"""Connecting: hosts in turn, clear reasons, a growing pause, a URL file that changes, nothing sent at start-up."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import asyncpg
import pytest

from exporter.config import DatabaseConfig
from exporter.config_loading import read_database_url
from exporter.database.connect import Connector
from exporter.database.database import Connection
from exporter.database.target import Host, SessionAttributes, Target, TlsMode, TlsSettings
from exporter.database.url import parse_url
from exporter.demo.postgres import EmbeddedPostgres
from exporter.errors import DatabaseUnavailable
from tests.database.proxy import Mode, TcpProxy
from tests.database.servers import Standby, server_with_passwords
from tests.database.targets import Clock

SECRET = "s3cr3t p@ss"
PLAIN = TlsSettings(mode=TlsMode.DISABLE)
QUICK = DatabaseConfig(connect_timeout_seconds=0.3)


@pytest.fixture(scope="module")
def guarded() -> Iterator[EmbeddedPostgres]:
    """A server that asks for passwords."""
    with server_with_passwords() as server:
        yield server


@pytest.fixture
async def admin(guarded: EmbeddedPostgres) -> Connection:
    return await asyncpg.connect(guarded.url())


@pytest.fixture(scope="module")
def hot_standby() -> Iterator[EmbeddedPostgres]:
    with Standby() as server:
        yield server


@pytest.fixture(scope="module")
def cold_standby() -> Iterator[EmbeddedPostgres]:
    with Standby(options={"hot_standby": "off"}) as server:
        yield server


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def target_of(*ports: int, **changes: object) -> Target:
    target = Target(
        hosts=tuple(Host("127.0.0.1", port) for port in ports), user="postgres", database="postgres", tls=PLAIN
    )
    return replace(target, **changes)  # type: ignore[arg-type]


def connector(target: Target, config: DatabaseConfig = QUICK, clock: Callable[[], float] | None = None) -> Connector:
    return Connector(lambda: target, config, uniform=lambda: 0.0, monotonic=clock or Clock())


async def port_reached(connect: Connector) -> int:
    connection = await connect()
    port = await connection.fetchval("SELECT current_setting('port')::int")
    connection.terminate()
    return int(port)


async def failure_of(connect: Connector) -> DatabaseUnavailable:
    with pytest.raises(DatabaseUnavailable) as caught:
        await connect()
    return caught.value


async def test_nothing_is_asked_of_the_server_at_start_up_and_no_statement_is_kept(postgres: EmbeddedPostgres) -> None:
    """Field cases F01 and F03: a pooler refuses any startup parameter that it does not know."""
    connection = await connector(target_of(postgres.port))()
    settings = await connection.fetch(
        "SELECT name, source FROM pg_settings WHERE source IN ('client', 'session') ORDER BY name"
    )
    assert [row["name"] for row in settings] == ["client_encoding"]
    for _ in range(10):
        await connection.fetch("SELECT $1::int", 1)
    assert await connection.fetchval("SELECT count(*) FROM pg_prepared_statements") == 0
    connection.terminate()


async def test_a_host_that_refuses_is_passed_over(postgres: EmbeddedPostgres) -> None:
    """Field case F14."""
    assert await port_reached(connector(target_of(closed_port(), postgres.port))) == postgres.port


async def test_a_silent_host_costs_one_deadline_and_not_one_per_connection(proxy: TcpProxy) -> None:
    """Field case F14: the host that worked goes first from then on."""
    await proxy.set_mode(Mode.HOLD)
    connect = connector(target_of(proxy.port, proxy.target_port))
    assert [await port_reached(connect) for _ in range(3)] == [proxy.target_port] * 3
    assert proxy.accepted == 1


async def test_connections_wanted_at_once_share_the_cost_of_a_silent_host(proxy: TcpProxy) -> None:
    await proxy.set_mode(Mode.HOLD)
    connect = connector(target_of(proxy.port, proxy.target_port))
    assert await asyncio.gather(*(port_reached(connect) for _ in range(4))) == [proxy.target_port] * 4
    assert proxy.accepted == 1


async def test_a_unix_socket_is_reached_by_its_directory(guarded: EmbeddedPostgres) -> None:
    """Field case F14: in both spellings, and without TLS whatever sslmode says."""
    directory = guarded.directory / "data"
    for url in (
        f"postgres://postgres@/postgres?host={directory}&port={guarded.port}",
        f"postgres://postgres@{str(directory).replace('/', '%2F')}:{guarded.port}/postgres?sslmode=require",
    ):
        assert await port_reached(connector(parse_url(url))) == guarded.port


async def test_a_user_with_an_at_sign_connects(postgres: EmbeddedPostgres) -> None:
    """Field case F08."""
    admin = await asyncpg.connect(postgres.url())
    await admin.execute('CREATE ROLE "app@srv" LOGIN')
    connection = await connector(parse_url(f"postgres://app%40srv:x@127.0.0.1:{postgres.port}/postgres"))()
    assert await connection.fetchval("SELECT current_user::text") == "app@srv"
    await connection.close()
    await admin.execute('DROP ROLE "app@srv"')
    await admin.close()


@pytest.mark.parametrize(
    ("attributes", "reached"),
    [
        (SessionAttributes.ANY, "standby"),
        (SessionAttributes.READ_WRITE, "primary"),
        (SessionAttributes.PRIMARY, "primary"),
        (SessionAttributes.READ_ONLY, "standby"),
        (SessionAttributes.STANDBY, "standby"),
        (SessionAttributes.PREFER_STANDBY, "standby"),
    ],
)
async def test_session_attributes_choose_the_server(
    attributes: SessionAttributes, reached: str, postgres: EmbeddedPostgres, hot_standby: EmbeddedPostgres
) -> None:
    target = target_of(hot_standby.port, postgres.port, session_attributes=attributes)
    port = await port_reached(connector(target))
    assert port == {"primary": postgres.port, "standby": hot_standby.port}[reached]


async def test_a_lone_standby_is_no_writable_server_and_says_so(hot_standby: EmbeddedPostgres) -> None:
    """Field case F14."""
    failure = await failure_of(
        connector(target_of(hot_standby.port, closed_port(), session_attributes=SessionAttributes.READ_WRITE))
    )
    assert failure.reason == "no_writable_server"
    assert "target_session_attrs=read-write" in str(failure)


async def test_a_lone_primary_will_do_where_a_standby_is_only_preferred(postgres: EmbeddedPostgres) -> None:
    target = target_of(postgres.port, session_attributes=SessionAttributes.PREFER_STANDBY)
    assert await port_reached(connector(target)) == postgres.port


async def test_session_attributes_are_asked_behind_a_pooler_too(pooler_port: int) -> None:
    connection = await connector(target_of(pooler_port, session_attributes=SessionAttributes.READ_WRITE))()
    connection.terminate()


async def test_a_missing_database_has_its_reason(postgres: EmbeddedPostgres) -> None:
    failure = await failure_of(connector(target_of(postgres.port, database='no "such')))
    assert (failure.reason, failure.sqlstate) == ("no_such_database", "3D000")


async def test_a_name_that_does_not_resolve_has_its_reason() -> None:
    for name in ("nowhere.invalid", "x" * 300, "bad host"):
        failure = await failure_of(connector(replace(target_of(5432), hosts=(Host(name),)), DatabaseConfig()))
        assert failure.reason == "unreachable"
        assert name in str(failure)


async def test_a_server_that_is_starting_has_its_reason(cold_standby: EmbeddedPostgres) -> None:
    """Field case F92."""
    failure = await failure_of(connector(target_of(cold_standby.port)))
    assert (failure.reason, failure.sqlstate) == ("starting", "57P03")


async def test_a_full_role_has_its_reason(postgres: EmbeddedPostgres) -> None:
    """Field case F24."""
    admin = await asyncpg.connect(postgres.url())
    await admin.execute("CREATE ROLE full_role LOGIN CONNECTION LIMIT 0")
    failure = await failure_of(connector(target_of(postgres.port, user="full_role")))
    assert (failure.reason, failure.sqlstate) == ("connection_limit", "53300")
    await admin.execute("DROP ROLE full_role")
    await admin.close()


async def test_something_that_is_no_database_server_has_a_reason() -> None:
    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 20)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(babble, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    for tls in (PLAIN, TlsSettings(mode=TlsMode.PREFER)):
        failure = await failure_of(connector(target_of(port, tls=tls)))
        assert failure.reason in {"unreachable", "tls"}
    server.close()


async def test_a_server_that_demands_tls_is_told_apart(guarded: EmbeddedPostgres, admin: Connection) -> None:
    """Field case F11: the role may only come with TLS, the URL says sslmode=disable."""
    await admin.execute("CREATE ROLE tls_only LOGIN PASSWORD 'x'")
    failure = await failure_of(connector(target_of(guarded.port, user="tls_only")))
    assert failure.reason == "authentication"
    assert "may require TLS, which sslmode=disable rules out" in str(failure)
    await admin.execute("DROP ROLE tls_only")
    await admin.close()


@pytest.mark.parametrize("wrong", ["", "not it"])
async def test_a_refused_password_names_the_target_but_not_the_password(
    guarded: EmbeddedPostgres, admin: Connection, wrong: str, caplog: pytest.LogCaptureFixture
) -> None:
    await admin.execute(f"CREATE ROLE windmill LOGIN PASSWORD '{SECRET}'")
    right = target_of(guarded.port, user="windmill", password=SECRET)
    (await connector(right)()).terminate()
    failure = await failure_of(connector(replace(right, password=wrong, hosts=right.hosts * 2)))
    assert failure.reason == "authentication"
    assert str(failure).count(f'database "postgres" as user "windmill" at 127.0.0.1:{guarded.port}') == 1
    assert "not it" not in str(failure) + caplog.text
    await admin.execute("DROP ROLE windmill")
    await admin.close()


async def test_a_new_password_in_the_file_is_used_at_once(
    guarded: EmbeddedPostgres, admin: Connection, tmp_path: Path
) -> None:
    """Field case F13 and the rotation of secrets: the file is read again when the server refuses."""
    await admin.execute("CREATE ROLE rotated LOGIN PASSWORD 'old'")
    file = tmp_path / "url"
    url = f"postgres://rotated:{{}}@127.0.0.1:{guarded.port}/postgres?sslmode=disable\n"
    file.write_text(url.format("old"))
    config = DatabaseConfig(url_file=str(file))
    connect = Connector(lambda: parse_url(read_database_url(config)), config)
    (await connect()).terminate()
    file.write_text(url.format("new"))
    (await connect()).terminate()  # the old one still works: nothing is read
    await admin.execute("ALTER ROLE rotated PASSWORD 'new'")
    (await connect()).terminate()
    file.unlink()
    (await connect()).terminate()
    await admin.execute("DROP ROLE rotated")
    await admin.close()


async def test_a_file_that_appears_later_is_picked_up(postgres: EmbeddedPostgres, tmp_path: Path) -> None:
    """Field case F13."""
    file = tmp_path / "url"
    clock = Clock()
    config = DatabaseConfig(url_file=str(file))
    connect = Connector(lambda: parse_url(read_database_url(config)), QUICK, monotonic=clock)
    missing = await failure_of(connect)
    assert missing.reason == "configuration"
    assert str(missing) == f"database.url_file {file} cannot be read: No such file or directory"
    file.write_text(f"\n {postgres.url()} \n\n")
    clock.now += 2
    assert await port_reached(connect) == postgres.port


async def test_while_backing_off_the_network_is_left_alone(proxy: TcpProxy) -> None:
    """Field case F11: at most one attempt a second in the first minute, then slower."""
    target = target_of(proxy.port, database="missing")
    clock = Clock()
    connect = connector(target, DatabaseConfig(), clock)
    attempts_at = []
    for _ in range(960):
        before = proxy.accepted
        failure = await failure_of(connect)
        if proxy.accepted > before:
            attempts_at.append(clock.now - 1000)
            assert failure.reason == "no_such_database"
        else:
            assert failure.reason == "backoff"
            assert failure.sqlstate == "3D000"
            assert 'database "missing" does not exist' in str(failure)
            assert "next attempt in" in str(failure)
        clock.now += 0.125
    assert attempts_at == [0.0, 1.0, 3.0, 7.0, 15.0, 31.0, 55.0, 79.0, 103.0]


async def test_a_reload_reads_the_target_and_ends_the_pause(postgres: EmbeddedPostgres) -> None:
    targets = iter([target_of(closed_port()), target_of(postgres.port, schema="wm")])
    connect = Connector(lambda: next(targets), QUICK, monotonic=Clock())
    assert connect.schema == ""
    await failure_of(connect)
    connect.reload()
    assert await port_reached(connect) == postgres.port
    assert connect.schema == "wm"


async def test_each_change_of_state_is_one_line(proxy: TcpProxy, caplog: pytest.LogCaptureFixture) -> None:
    """Field case F92."""
    caplog.set_level(logging.INFO)
    clock = Clock()
    target = target_of(proxy.port, warnings=("the URL is odd",))
    connect = connector(target, QUICK, clock)
    (await connect()).terminate()
    await proxy.set_mode(Mode.REFUSE)
    for _ in range(5):
        await failure_of(connect)
        clock.now += 40
    await proxy.set_mode(Mode.FORWARD)
    for _ in range(3):
        (await connect()).terminate()
    lines = [record.getMessage() for record in caplog.records if record.name.startswith("exporter")]
    assert [line.split(":")[0] for line in lines] == [
        "the URL is odd",
        "connected to the database",
        "no database connection",
        "connected to the database again",
    ]


async def test_a_cancelled_attempt_is_no_failure(proxy: TcpProxy) -> None:
    connect = connector(target_of(proxy.port), DatabaseConfig())
    await proxy.set_mode(Mode.HOLD)
    task = asyncio.create_task(connect())
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await proxy.set_mode(Mode.FORWARD)
    (await connect()).terminate()
