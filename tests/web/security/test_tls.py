"""TLS of the listener over real connections: who gets in, and certificates replaced while it runs."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import ClientConnectionError, ClientSession, TCPConnector
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from exporter.conditions import Conditions
from exporter.errors import ConfigError
from exporter.web.listen import parse_listen_address
from exporter.web.security.access import Access
from exporter.web.security.web_files import WebFiles
from exporter.web.server import WebServer
from tests.web.certificates import (
    AUTHORITY,
    FOREIGN,
    MUTUAL,
    TLS,
    USERS,
    WebConfigFile,
    client_context,
    issue,
    sign_in,
)
from tests.web.serving import Service


class Served:
    """A server on the files of a test, and whether it said that these can be used."""

    def __init__(self, path: str, start: WebServer, reports: list[bool]) -> None:
        self.path = path
        self.server = start
        self.reports = reports

    @property
    def url(self) -> str:
        return self.server.urls[0]

    async def get(self, context: ssl.SSLContext | None = None, headers: dict[str, str] | None = None) -> int:
        """The status of `/metrics` over a connection of its own."""
        connector = TCPConnector(ssl=context or client_context())
        async with (
            ClientSession(connector=connector) as session,
            session.get(f"{self.url}/metrics", headers=headers) as response,
        ):
            return response.status

    async def look(self) -> None:
        """Look at the files twice: a change counts when the second look finds the same."""
        for _ in range(2):
            await self.server.watch()

    async def serial_number(self) -> str:
        """That of the certificate that a new connection is shown."""
        host, _, port = self.url.removeprefix("https://").partition(":")
        _, writer = await asyncio.open_connection(host, int(port), ssl=client_context(), server_hostname="localhost")
        certificate = writer.get_extra_info("peercert")
        writer.close()
        await writer.wait_closed()
        return str(certificate["serialNumber"])


@asynccontextmanager
async def serving(path: str) -> AsyncIterator[Served]:
    """The application on `path`; the test itself says when to look at the files."""
    access, reports = Access(), list[bool]()
    server = WebServer(access, Conditions(), reports.append, lambda: 0.0)
    await server.start(
        Service(access=access).app(), parse_listen_address("127.0.0.1:0"), WebFiles(path), public_metrics=False
    )
    try:
        yield Served(path, server, reports)
    finally:
        await server.stop()


def replace(source: Path, target: Path) -> None:
    """As certificate tools do it: a new file under the old name."""
    shutil.copy(source, target.with_suffix(".new"))
    target.with_suffix(".new").replace(target)


async def test_https_is_served_and_plain_http_is_not(web_config: WebConfigFile) -> None:
    async with serving(web_config.write(TLS)) as served:
        assert served.url.startswith("https://")
        assert await served.get() == 200
        async with ClientSession() as session:
            with pytest.raises(ClientConnectionError):
                await session.get(served.url.replace("https", "http"))


async def test_without_a_section_of_tls_plain_http_is_served(web_config: WebConfigFile) -> None:
    async with serving(web_config.write(USERS)) as served:
        assert served.url.startswith("http://")
        assert await served.get() == 401
        assert await served.get(headers=sign_in()) == 200


async def test_users_are_asked_over_tls_as_well(web_config: WebConfigFile) -> None:
    async with serving(web_config.write(TLS, USERS)) as served:
        assert await served.get() == 401
        assert await served.get(headers=sign_in()) == 200


async def test_a_client_with_a_certificate_of_the_authority_gets_in_and_no_other(web_config: WebConfigFile) -> None:
    async with serving(web_config.write(MUTUAL)) as served:
        assert await served.get(client_context(own=AUTHORITY)) == 200
        for context in (client_context(), client_context(own=FOREIGN)):
            with pytest.raises(ClientConnectionError):
                await served.get(context)
        assert await served.get(client_context(own=AUTHORITY)) == 200


async def test_a_certificate_that_is_only_verified_if_given_may_be_missing_but_not_wrong(
    web_config: WebConfigFile,
) -> None:
    text = MUTUAL.replace("RequireAndVerifyClientCert", "VerifyClientCertIfGiven")
    async with serving(web_config.write(text)) as served:
        assert await served.get() == 200
        assert await served.get(client_context(own=AUTHORITY)) == 200
        with pytest.raises(ClientConnectionError):
            await served.get(client_context(own=FOREIGN))


@pytest.mark.parametrize(
    ("keys", "accepted"),
    [
        ("", {ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3}),
        ("  min_version: TLS13\n", {ssl.TLSVersion.TLSv1_3}),
        ("  max_version: TLS12\n", {ssl.TLSVersion.TLSv1_2}),
        ("  cipher_suites: [TLS_AES_128_GCM_SHA256]\n", {ssl.TLSVersion.TLSv1_3}),
    ],
)
async def test_only_the_versions_asked_for_are_spoken(
    web_config: WebConfigFile, keys: str, accepted: set[ssl.TLSVersion]
) -> None:
    async with serving(web_config.write(TLS + keys)) as served:
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = client_context(version=version)
            if version in accepted:
                assert await served.get(context) == 200
            else:
                with pytest.raises(ClientConnectionError):
                    await served.get(context)


async def test_only_the_suites_asked_for_are_offered(web_config: WebConfigFile) -> None:
    wanted = "  cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384]\n"
    async with serving(web_config.write(TLS + wanted)) as served:
        context = client_context(version=ssl.TLSVersion.TLSv1_2)
        context.set_ciphers("ECDHE-ECDSA-AES256-GCM-SHA384")
        assert await served.get(context) == 200
        context.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
        with pytest.raises(ClientConnectionError):
            await served.get(context)


async def test_a_replaced_certificate_is_shown_to_new_connections_and_old_ones_go_on(
    web_config: WebConfigFile, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with serving(web_config.write(TLS)) as served:
        url, before = served.url, await served.serial_number()
        async with ClientSession(connector=TCPConnector(ssl=client_context(), limit=1)) as kept:
            async with kept.get(f"{url}/metrics") as response:
                await response.read()
            await served.look()
            assert await served.serial_number() == before
            issue(web_config.directory)
            await served.look()
            assert await served.serial_number() != before
            assert served.url == url
            async with kept.get(f"{url}/metrics") as response:
                assert response.status == 200
    assert len([record for record in caplog.records if "read again" in record.getMessage()]) == 1


async def test_no_connection_is_refused_while_certificates_are_replaced(web_config: WebConfigFile) -> None:
    async with serving(web_config.write(TLS)) as served:
        stop = asyncio.Event()
        answered = 0

        async def ask() -> None:
            nonlocal answered
            while not stop.is_set():
                assert await served.get() == 200
                answered += 1

        asking = [asyncio.create_task(ask()) for _ in range(3)]
        for _ in range(10):
            issue(web_config.directory)
            await served.look()
            await asyncio.sleep(0.02)
        stop.set()
        await asyncio.gather(*asking)
        assert answered > 10


async def test_a_mounted_secret_is_noticed_when_its_directory_is_swapped(tmp_path: Path) -> None:
    """Kubernetes: the files are links through `..data`, which is itself a link and is replaced."""
    for version in ("first", "second"):
        (tmp_path / version).mkdir()
        issue(tmp_path / version)
        (tmp_path / version / "web.yml").write_text(TLS)
    (tmp_path / "..data").symlink_to("first")
    for name in ("web.yml", "server.crt", "server.key"):
        (tmp_path / name).symlink_to(f"..data/{name}")
    async with serving(str(tmp_path / "web.yml")) as served:
        before = await served.serial_number()
        (tmp_path / "..new").symlink_to("second")
        (tmp_path / "..new").replace(tmp_path / "..data")
        await served.look()
        assert await served.serial_number() != before


async def test_a_broken_replacement_keeps_the_old_one_is_logged_once_and_shown(
    web_config: WebConfigFile, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with serving(web_config.write(TLS)) as served:
        before = await served.serial_number()
        key = web_config.directory / "server.key"
        good = key.read_bytes()
        for content in (b"half a file", b"another half"):
            key.write_bytes(content)
            for _ in range(3):
                await served.look()
        assert await served.serial_number() == before
        key.write_bytes(good)
        await served.look()
        assert served.reports == [True, False, False, True]
        assert await served.get() == 200
    told = [(record.levelname, record.getMessage()) for record in caplog.records if hasattr(record, "condition")]
    assert [level for level, _ in told] == ["WARNING", "INFO"]
    assert told[0][1].startswith(f"the web config in force stays: {served.path}: tls_server_config: ")


@pytest.mark.parametrize("text", ["", "basic_auth_users: [", "tls_server_config: {}\nbasic_auth_users: {alice: x}\n"])
async def test_a_broken_config_file_never_opens_what_was_closed(web_config: WebConfigFile, text: str) -> None:
    """An empty file is a good one: it says that nobody is to be asked. Anything half written says nothing."""
    async with serving(web_config.write(TLS, USERS)) as served:
        web_config.write(text)
        await served.look()
        if text:
            assert await served.get() == 401
            assert served.url.startswith("https://")
        else:
            assert await served.get() == 200
            assert served.url.startswith("http://")


async def test_a_file_that_vanished_keeps_what_is_in_force(web_config: WebConfigFile) -> None:
    async with serving(web_config.write(TLS, USERS)) as served:
        web_config.path.unlink()
        await served.look()
        assert await served.get() == 401
        assert served.reports[-1] is False


async def test_users_and_tls_come_and_go_with_the_file(web_config: WebConfigFile) -> None:
    async with serving(web_config.write("")) as served:
        assert await served.get() == 200
        web_config.write(USERS)
        await served.look()
        assert await served.get() == 401
        web_config.write(USERS.replace("alice", "bob"), TLS)
        await served.look()
        assert served.url.startswith("https://")
        assert await served.get(headers=sign_in()) == 401
        assert await served.get(headers=sign_in("bob")) == 200


async def test_an_authority_that_was_replaced_lets_its_clients_in_no_more(web_config: WebConfigFile) -> None:
    async with serving(web_config.write(MUTUAL)) as served:
        replace_authority = web_config.directory / "other.crt"
        FOREIGN.cert_pem.write_to_path(replace_authority)
        replace(replace_authority, web_config.directory / "clients.crt")
        await served.look()
        assert await served.get(client_context(own=FOREIGN)) == 200
        with pytest.raises(ClientConnectionError):
            await served.get(client_context(own=AUTHORITY))


def encrypted(key: Path) -> bytes:
    loaded = load_pem_private_key(key.read_bytes(), None)
    return loaded.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("server.key", None, "tls_server_config.key_file: {path} cannot be read: No such file or directory"),
        ("server.crt", None, "tls_server_config.cert_file: {path} cannot be read: No such file or directory"),
        ("clients.crt", None, "tls_server_config.client_ca_file: {path} cannot be read: No such file or directory"),
        ("clients.crt", b"text", "tls_server_config.client_ca_file: {path} holds no certificate in PEM form"),
        ("server.key", b"text", "hold no certificate and key in PEM form"),
        ("server.crt", b"", "hold no certificate and key in PEM form"),
        ("server.key", b"other", "tls_server_config.key_file: {path} is not the key of the certificate"),
        ("server.key", b"encrypted", "tls_server_config.key_file: {path} is encrypted; store the key without a"),
    ],
)
async def test_files_that_cannot_be_used_are_named(
    web_config: WebConfigFile, tmp_path: Path, name: str, content: bytes | None, problem: str
) -> None:
    path = web_config.directory / name
    if content == b"other":
        issue(tmp_path, name="other")
        replace(tmp_path / "other.key", path)
    elif content == b"encrypted":
        path.write_bytes(encrypted(path))
    elif content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    config = web_config.write(MUTUAL)
    with pytest.raises(ConfigError) as caught:
        WebFiles(config).load()
    assert f"{config}: tls_server_config" in str(caught.value)
    assert problem.format(path=path) in str(caught.value)


async def test_every_file_that_cannot_be_read_is_named_at_once(web_config: WebConfigFile) -> None:
    text = (
        TLS.replace(": server", ": gone") + "  client_ca_file: gone.ca\n  client_auth_type: VerifyClientCertIfGiven\n"
    )
    with pytest.raises(ConfigError) as caught:
        WebFiles(web_config.write(text)).load()
    assert len(caught.value.problems) == 3


def test_a_change_of_any_file_is_noticed_and_no_change_is_not(web_config: WebConfigFile) -> None:
    files = WebFiles(web_config.write(MUTUAL))
    files.load()
    for name in ("web.yml", "server.crt", "server.key", "clients.crt"):
        assert [files.changed() for _ in range(3)] == [False] * 3
        path = web_config.directory / name
        path.write_bytes(path.read_bytes() + b"\n")
        assert [files.changed() for _ in range(3)] == [False, True, True]
        files.load()


def test_a_file_that_is_still_being_written_does_not_count(web_config: WebConfigFile) -> None:
    """Cut after any section it would be a good file, without users."""
    files = WebFiles(web_config.write(TLS, USERS))
    files.load()
    for length in range(0, len(TLS), 10):
        web_config.write(TLS[:length])
        assert not files.changed()
    web_config.write(TLS, USERS.replace("alice", "bob"))
    assert [files.changed() for _ in range(2)] == [False, True]


def test_a_file_that_becomes_readable_is_noticed(web_config: WebConfigFile) -> None:
    files = WebFiles(web_config.write(TLS))
    files.load()
    os.chmod(web_config.directory / "server.key", 0o644)  # noqa: PTH101 -- what the operator does
    assert [files.changed() for _ in range(2)] == [False, True]


def test_without_a_path_there_is_nothing_to_notice() -> None:
    files = WebFiles("")
    assert files.load().context is None
    assert not files.changed()
