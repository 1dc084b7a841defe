"""Passwords: what is right, what a check costs, what stays in memory."""

from __future__ import annotations

import asyncio
import base64
import gc
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import bcrypt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.web.security.credentials import (
    MAX_PASSWORD_BYTES,
    MAX_WAITING_CHECKS,
    Credentials,
    TooManyChecks,
    check_bcrypt,
    parse_basic,
)

LONG = "p" * MAX_PASSWORD_BYTES
PASSWORDS = {"alice": "correct horse", "bob": "pässwörd:with:colons", "long": LONG, "nul": "a\0b"}
USERS = {name: bcrypt.hashpw(text.encode(), bcrypt.gensalt(4)).decode() for name, text in PASSWORDS.items()}


@dataclass
class CountedCheck:
    """The real check, counted by the hash that it is made against; it waits while `gate` is closed."""

    hashes: list[str] = field(default_factory=list)
    threads: set[int] = field(default_factory=set)
    gate: threading.Event = field(default_factory=threading.Event)

    def __call__(self, hashed: bytes, password: bytes) -> bool:
        self.hashes.append(hashed.decode())
        self.threads.add(threading.get_ident())
        self.gate.wait(10)
        return check_bcrypt(hashed, password)


@pytest.fixture
def check() -> CountedCheck:
    counted = CountedCheck()
    counted.gate.set()
    return counted


@pytest.fixture
def credentials(check: CountedCheck) -> Iterator[Credentials]:
    with ThreadPoolExecutor(1) as executor:
        yield Credentials(USERS, executor, check)


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.mark.parametrize("user", PASSWORDS)
async def test_the_right_password_is_allowed(credentials: Credentials, user: str) -> None:
    assert await credentials.allow(basic(user, PASSWORDS[user]))


@pytest.mark.parametrize(
    ("user", "password"),
    [
        ("alice", "wrong"),
        ("alice", ""),
        ("alice", "correct horse "),
        ("Alice", "correct horse"),
        ("alice", PASSWORDS["bob"]),
        ("mallory", "correct horse"),
        ("", ""),
        ("nul", "a"),
        ("long", LONG + "q"),
        ("long", LONG[:-1]),
    ],
)
async def test_anything_else_is_not(credentials: Credentials, user: str, password: str) -> None:
    assert not await credentials.allow(basic(user, password))


@pytest.mark.parametrize(
    "header",
    [None, "", "Basic", "Basic ", "Basic !!!", "Basic YWxpY2U=", "Bearer abc", "Basic \udcff", "Basic " + "A" * 9000],
)
async def test_what_is_no_basic_header_is_not_allowed_and_checks_nothing(
    credentials: Credentials, check: CountedCheck, header: str | None
) -> None:
    assert not await credentials.allow(header)
    assert check.hashes == []


async def test_the_scheme_is_read_in_any_case(credentials: Credentials) -> None:
    assert await credentials.allow(basic("alice", PASSWORDS["alice"]).replace("Basic", "bASIC"))


async def test_a_password_that_was_right_is_not_checked_again(credentials: Credentials, check: CountedCheck) -> None:
    for _ in range(20):
        assert await credentials.allow(basic("alice", PASSWORDS["alice"]))
    assert len(check.hashes) == 1


async def test_a_wrong_password_is_checked_each_time_also_after_the_right_one(
    credentials: Credentials, check: CountedCheck
) -> None:
    await credentials.allow(basic("alice", PASSWORDS["alice"]))
    for _ in range(3):
        assert not await credentials.allow(basic("alice", "wrong"))
    assert await credentials.allow(basic("alice", PASSWORDS["alice"]))
    assert len(check.hashes) == 4


async def test_an_unknown_user_costs_what_a_known_one_costs(credentials: Credentials, check: CountedCheck) -> None:
    """One check each, against a hash of the same kind and cost, which stays the same for the same name."""
    for user in ("alice", "mallory", "mallory", "mallory"):
        await credentials.allow(basic(user, "wrong"))
    assert len(check.hashes) == 4
    assert set(check.hashes) <= set(USERS.values())
    assert len(set(check.hashes[1:])) == 1


async def test_unknown_users_are_spread_over_the_hashes(credentials: Credentials, check: CountedCheck) -> None:
    """Where the users' hashes differ in cost, an unknown name is not told apart by one cost of its own."""
    for number in range(60):
        await credentials.allow(basic(f"user {number}", "wrong"))
    assert set(check.hashes) == set(USERS.values())


async def test_an_unknown_user_stays_out_with_the_password_of_its_stand_in(check: CountedCheck) -> None:
    with ThreadPoolExecutor(1) as executor:
        credentials = Credentials({"alice": USERS["alice"]}, executor, check)
        for _ in range(2):
            assert not await credentials.allow(basic("mallory", PASSWORDS["alice"]))
    assert check.hashes == [USERS["alice"]] * 2


async def test_a_password_that_bcrypt_would_cut_is_refused_without_a_check_for_any_user(
    credentials: Credentials, check: CountedCheck
) -> None:
    for user in ("long", "mallory"):
        assert not await credentials.allow(basic(user, LONG + "q"))
    assert check.hashes == []


async def test_checks_run_in_a_thread_and_the_loop_turns_meanwhile(
    credentials: Credentials, check: CountedCheck
) -> None:
    check.gate.clear()
    waiting = asyncio.ensure_future(credentials.allow(basic("alice", PASSWORDS["alice"])))
    for _ in range(50):
        await asyncio.sleep(0.002)
    assert not waiting.done()
    check.gate.set()
    assert await waiting
    assert threading.get_ident() not in check.threads


async def test_the_same_credentials_at_the_same_time_are_one_check(
    credentials: Credentials, check: CountedCheck
) -> None:
    check.gate.clear()
    requests = [asyncio.ensure_future(credentials.allow(basic("alice", PASSWORDS["alice"]))) for _ in range(100)]
    await asyncio.sleep(0.02)
    check.gate.set()
    assert await asyncio.gather(*requests) == [True] * 100
    assert len(check.hashes) == 1


async def test_a_client_that_hangs_up_leaves_the_others_their_check(
    credentials: Credentials, check: CountedCheck
) -> None:
    check.gate.clear()
    first, second = (asyncio.ensure_future(credentials.allow(basic("alice", PASSWORDS["alice"]))) for _ in range(2))
    await asyncio.sleep(0.02)
    first.cancel()
    check.gate.set()
    assert await second
    assert len(check.hashes) == 1


async def test_guesses_queue_up_to_a_limit_and_no_known_password_waits_for_them(
    credentials: Credentials, check: CountedCheck
) -> None:
    await credentials.allow(basic("alice", PASSWORDS["alice"]))
    check.gate.clear()
    guesses = [asyncio.ensure_future(credentials.allow(basic("bob", f"guess {n}"))) for n in range(MAX_WAITING_CHECKS)]
    await asyncio.sleep(0.02)
    with pytest.raises(TooManyChecks):
        await credentials.allow(basic("bob", "one more"))
    assert await credentials.allow(basic("alice", PASSWORDS["alice"]))
    check.gate.set()
    assert await asyncio.gather(*guesses) == [False] * MAX_WAITING_CHECKS
    assert await credentials.allow(basic("bob", PASSWORDS["bob"]))
    assert len(check.hashes) == MAX_WAITING_CHECKS + 2


async def test_no_password_stays_in_memory(credentials: Credentials) -> None:
    secret = "an unusual password " + "x" * 20
    users = {"carol": bcrypt.hashpw(secret.encode(), bcrypt.gensalt(4)).decode()}
    with ThreadPoolExecutor(1) as executor:
        credentials = Credentials(users, executor)
        assert await credentials.allow(basic("carol", secret))
    gc.collect()
    held = [credentials._right, credentials._running, credentials._hashes, credentials._order, credentials._key]
    assert secret not in repr(held)
    assert secret.encode() not in b"".join(credentials._right.values())


@given(st.text(max_size=30).filter(lambda name: ":" not in name), st.text(max_size=30))
def test_names_and_passwords_of_any_text_are_read_as_they_are(user: str, password: str) -> None:
    assert parse_basic(basic(user, password)) == (user.encode(), password.encode())


@given(st.text(max_size=60))
def test_any_header_is_read_or_none(header: str) -> None:
    parse_basic(header)
    parse_basic(f"Basic {header}")
