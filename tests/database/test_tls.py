"""TLS by the URL: against a real PgBouncer with certificates of a private authority, and without any home directory."""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme

from exporter.config import DatabaseConfig
from exporter.database.connect import Connector
from exporter.database.target import Host, Target, TlsMode, TlsSettings, TlsVersion
from exporter.database.tls import attempts
from exporter.demo.postgres import EmbeddedPostgres
from exporter.errors import ConfigError, DatabaseUnavailable
from tests.database.pooler import pgbouncer
from tests.database.servers import direct_tls
from tests.sources import PROJECT

ENCRYPTING = [TlsMode.REQUIRE, TlsMode.VERIFY_CA, TlsMode.VERIFY_FULL]


@dataclass(frozen=True)
class Authority:
    """Files of a private authority: its certificate, a server's for `localhost` alone, a client's."""

    certificate: str
    server: Path
    client: str
    stranger: str


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    directory = tmp_path_factory.mktemp("tls")
    # PgBouncer reads them without root's rights. With several workers each has a directory more of its own.
    for folder in (directory, *directory.parents[:3]):
        if folder.name not in {"", "tmp"}:
            folder.chmod(0o755)
    own, foreign = trustme.CA(), trustme.CA()
    own.cert_pem.write_to_path(directory / "ca.pem")
    foreign.cert_pem.write_to_path(directory / "stranger.pem")
    own.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(directory / "server.pem")
    own.issue_cert("postgres").private_key_and_cert_chain_pem.write_to_path(directory / "client.pem")
    for file in directory.iterdir():
        file.chmod(0o644)
    return Authority(
        certificate=str(directory / "ca.pem"),
        server=directory / "server.pem",
        client=str(directory / "client.pem"),
        stranger=str(directory / "stranger.pem"),
    )


@pytest.fixture(scope="module")
def tls_port(template_loaded: EmbeddedPostgres, authority: Authority) -> Iterator[int]:
    """A PgBouncer that takes TLS only, and no TLS below 1.3."""
    extra = (
        f"client_tls_sslmode = require\nclient_tls_key_file = {authority.server}\n"
        f"client_tls_cert_file = {authority.server}\nclient_tls_protocols = tlsv1.3\n"
    )
    with pgbouncer(template_loaded.port, extra=extra) as port:
        yield port


@pytest.fixture(scope="module")
def client_certificate_port(template_loaded: EmbeddedPostgres, authority: Authority) -> Iterator[int]:
    """A PgBouncer that asks for a client's certificate."""
    extra = (
        f"client_tls_sslmode = verify-ca\nclient_tls_key_file = {authority.server}\n"
        f"client_tls_cert_file = {authority.server}\nclient_tls_ca_file = {authority.certificate}\n"
    )
    with pgbouncer(template_loaded.port, extra=extra) as port:
        yield port


async def is_encrypted(port: int, settings: TlsSettings, host: str = "localhost") -> bool:
    """Connect as the settings say; whether the connection is encrypted."""
    target = Target(hosts=(Host(host, port),), user="postgres", database="postgres", tls=settings)
    connection = await Connector(lambda: target, DatabaseConfig())()
    transport = connection._transport  # type: ignore[attr-defined]  # the driver has no public way to ask
    connection.terminate()
    return transport.get_extra_info("ssl_object") is not None


async def test_every_mode_but_disable_encrypts_where_the_server_demands_it(tls_port: int, authority: Authority) -> None:
    """Field case F10: a private authority by the path of its bundle."""
    for mode in (TlsMode.ALLOW, TlsMode.PREFER, *ENCRYPTING):
        root = authority.certificate if mode.verifies else ""
        assert await is_encrypted(tls_port, TlsSettings(mode=mode, root_certificate=root))


async def test_disable_says_that_the_server_demands_tls(tls_port: int) -> None:
    with pytest.raises(DatabaseUnavailable, match="write sslmode=require") as caught:
        await is_encrypted(tls_port, TlsSettings(mode=TlsMode.DISABLE))
    assert caught.value.reason == "tls"


async def test_plain_text_where_the_server_has_no_tls_and_the_mode_allows_it(template_loaded: EmbeddedPostgres) -> None:
    for mode in (TlsMode.DISABLE, TlsMode.ALLOW, TlsMode.PREFER):
        assert not await is_encrypted(template_loaded.port, TlsSettings(mode=mode))


@pytest.mark.parametrize("mode", ENCRYPTING)
async def test_never_plain_text_in_require_or_stricter(
    mode: TlsMode, template_loaded: EmbeddedPostgres, authority: Authority
) -> None:
    with pytest.raises(DatabaseUnavailable, match="offers no TLS") as caught:
        await is_encrypted(template_loaded.port, TlsSettings(mode=mode, root_certificate=authority.certificate))
    assert caught.value.reason == "tls"


async def test_a_wrong_host_name_is_refused_by_verify_full_alone(tls_port: int, authority: Authority) -> None:
    """The certificate is for localhost; we ask for 127.0.0.1."""
    full = TlsSettings(mode=TlsMode.VERIFY_FULL, root_certificate=authority.certificate)
    with pytest.raises(DatabaseUnavailable, match=r"127\.0\.0\.1") as caught:
        await is_encrypted(tls_port, full, "127.0.0.1")
    assert caught.value.reason == "tls"
    trusting = TlsSettings(mode=TlsMode.VERIFY_CA, root_certificate=authority.certificate)
    assert await is_encrypted(tls_port, trusting, "127.0.0.1")


@pytest.mark.parametrize("mode", ENCRYPTING)
async def test_a_foreign_authority_is_refused(mode: TlsMode, tls_port: int, authority: Authority) -> None:
    """`require` with a root certificate verifies it, as libpq does."""
    for root in (authority.stranger, "system"):
        if root == "system" and mode is TlsMode.REQUIRE:
            continue
        with pytest.raises(DatabaseUnavailable, match="certificate verify failed") as caught:
            await is_encrypted(tls_port, TlsSettings(mode=mode, root_certificate=root))
        assert caught.value.reason == "tls"


async def test_a_version_that_the_server_refuses_is_a_tls_failure(tls_port: int) -> None:
    settings = TlsSettings(mode=TlsMode.REQUIRE, max_version=TlsVersion.TLS_1_2)
    with pytest.raises(DatabaseUnavailable) as caught:
        await is_encrypted(tls_port, settings)
    assert caught.value.reason == "tls"


async def test_a_client_certificate_is_shown(client_certificate_port: int, authority: Authority) -> None:
    settings = TlsSettings(mode=TlsMode.REQUIRE, certificate=authority.client, key=authority.client)
    assert await is_encrypted(client_certificate_port, settings)
    with pytest.raises(DatabaseUnavailable):
        await is_encrypted(client_certificate_port, TlsSettings(mode=TlsMode.REQUIRE))


async def test_direct_tls_asks_no_question_first(template_loaded: EmbeddedPostgres, authority: Authority) -> None:
    async with direct_tls(template_loaded.port, authority.server) as port:
        settings = TlsSettings(mode=TlsMode.VERIFY_FULL, root_certificate=authority.certificate, direct=True)
        assert await is_encrypted(port, settings)


def test_contexts_follow_the_mode_and_never_offer_an_old_protocol() -> None:
    assert attempts(TlsSettings(mode=TlsMode.DISABLE)) == (None,)
    plain, encrypted = attempts(TlsSettings(mode=TlsMode.ALLOW))
    assert plain is None
    assert encrypted is not None
    assert encrypted.minimum_version is ssl.TLSVersion.TLSv1_2
    assert encrypted.verify_mode is ssl.CERT_NONE
    assert attempts(TlsSettings(mode=TlsMode.PREFER))[1] is None


def test_each_file_that_cannot_be_used_is_named(tmp_path: Path, authority: Authority) -> None:
    missing = str(tmp_path / "nowhere.pem")
    settings = TlsSettings(
        mode=TlsMode.VERIFY_FULL, root_certificate=missing, certificate=missing, key=str(tmp_path), revocation_list=""
    )
    with pytest.raises(ConfigError) as caught:
        attempts(settings)
    assert [problem.split("=")[0] for problem in caught.value.problems] == ["sslrootcert", "sslcert", "sslkey"]
    garbage = tmp_path / "garbage.pem"
    garbage.write_text("no certificate")
    for broken in (
        TlsSettings(mode=TlsMode.VERIFY_CA, root_certificate=str(garbage)),
        TlsSettings(mode=TlsMode.REQUIRE, certificate=str(garbage)),
        TlsSettings(mode=TlsMode.VERIFY_CA, root_certificate=authority.certificate, revocation_list=str(garbage)),
    ):
        with pytest.raises(ConfigError, match=r"garbage\.pem"):
            attempts(broken)


def test_a_revocation_list_is_demanded_once_it_is_named(authority: Authority, tmp_path: Path) -> None:
    settings = TlsSettings(
        mode=TlsMode.VERIFY_CA, root_certificate=authority.certificate, revocation_directory=str(tmp_path)
    )
    (context,) = attempts(settings)
    assert context is not None
    assert context.verify_flags & ssl.VERIFY_CRL_CHECK_CHAIN


# The identity changes inside: the interpreter itself may lie where only root may look.
CONNECT = """
import asyncio, concurrent.futures.thread, encodings.idna, os, sys
from exporter.config import DatabaseConfig
from exporter.database.connect import Connector
from exporter.database.url import parse_url

async def main():
    for url in sys.argv[1:]:
        connection = await Connector(lambda: parse_url(url), DatabaseConfig())()
        print(await connection.fetchval("SELECT current_user || ' ' || current_database()"))
        connection.terminate()

if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65532)
    os.setuid(65532)
asyncio.run(main())
"""


@pytest.fixture
def closed_home(tmp_path: Path) -> Iterator[Path]:
    """A home directory that the user of the process must not look into: even asking is EACCES."""
    home = tmp_path / "root"
    (home / ".postgresql").mkdir(parents=True)
    (home / ".postgresql" / "root.crt").write_text("not for you")
    home.chmod(0o700 if os.geteuid() == 0 else 0)
    yield home
    home.chmod(0o700)
    shutil.rmtree(home)


def run_foreign(home: Path, *urls: str, **environment: str) -> str:
    """Connect from a process with that home and, under root, with a foreign uid; what it printed."""
    outcome = subprocess.run(
        [sys.executable, "-c", CONNECT, *urls],
        capture_output=True,
        text=True,
        check=False,
        cwd=PROJECT,
        env={"HOME": str(home), **environment},
    )
    assert outcome.returncode == 0, outcome.stderr
    return outcome.stdout


def test_a_home_directory_that_may_not_be_read_is_never_looked_at(
    closed_home: Path, tls_port: int, template_loaded: EmbeddedPostgres
) -> None:
    """Field case F09, in all modes that need no file."""
    plain = f"postgres://postgres@127.0.0.1:{template_loaded.port}/postgres"
    encrypted = f"postgres://postgres@127.0.0.1:{tls_port}/postgres"
    urls = [plain, f"{plain}?sslmode=disable", f"{plain}?sslmode=allow", encrypted, f"{encrypted}?sslmode=require"]
    assert run_foreign(closed_home, *urls) == "postgres postgres\n" * len(urls)


def test_variables_of_other_clients_change_nothing(closed_home: Path, template_loaded: EmbeddedPostgres) -> None:
    """Field case F88: every variable that libpq reads is set to something that would fail."""
    url = f"postgres://postgres@127.0.0.1:{template_loaded.port}/postgres"
    output = run_foreign(
        closed_home,
        url,
        PGHOST="nowhere.invalid",
        PGPORT="1",
        PGUSER="nobody",
        PGDATABASE="nothing",
        PGPASSWORD="wrong",
        PGPASSFILE=str(closed_home / ".pgpass"),
        PGSERVICE="nothing",
        PGSERVICEFILE=str(closed_home / ".pg_service.conf"),
        PGSSLMODE="verify-full",
        PGSSLROOTCERT=str(closed_home / ".postgresql" / "root.crt"),
        PGSSLCERT="/nowhere",
        PGSSLNEGOTIATION="direct",
        PGOPTIONS="-c search_path=nowhere",
        PGTARGETSESSIONATTRS="standby",
        PGGSSLIB="nothing",
    )
    assert output == "postgres postgres\n"
