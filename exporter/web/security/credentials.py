"""Basic credentials against bcrypt hashes, off the event loop, without bcrypt for a password that was right before.

What an answer costs tells nothing: an unknown name is checked against the hash of one of the users, always the same
one, and the result is thrown away. Of a password only a keyed digest stays in memory, under a key of this process.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import Executor

# bcrypt looks at no more: two passwords that differ later only would be one.
MAX_PASSWORD_BYTES = 72
MAX_WAITING_CHECKS = 32
NO_DIGEST = bytes(hashlib.blake2b().digest_size)

# Whether a password (second) is that of a hash (first); runs in a thread.
Check = Callable[[bytes, bytes], bool]


class TooManyChecks(Exception):
    """More passwords wait to be checked than is sensible: somebody tries many."""


class Credentials:
    """The users of one web config file. `check` runs in `executor`, whose size bounds what guessing can cost."""

    def __init__(self, users: Mapping[str, str], executor: Executor, check: Check | None = None) -> None:
        self._hashes = {name.encode(errors="surrogatepass"): bcrypt.encode() for name, bcrypt in users.items()}
        self._order = sorted(self._hashes)
        self._executor = executor
        self._check = check or check_bcrypt
        self._key = secrets.token_bytes(32)
        self._right: dict[bytes, bytes] = {}
        self._running: dict[bytes, asyncio.Future[bool]] = {}

    async def allow(self, authorization: str | None) -> bool:
        """Whether the header Authorization names a user with the right password. Raises `TooManyChecks`."""
        given = parse_basic(authorization)
        if given is None:
            return False
        user, password = given
        if len(password) > MAX_PASSWORD_BYTES:
            return False
        digest = self._digest(user, password)
        if hmac.compare_digest(digest, self._right.get(user, NO_DIGEST)):
            return True
        known = user in self._hashes
        matched = await self._matches(self._hashes.get(user) or self._stand_in(user), password, digest)
        if matched and known:
            self._right[user] = digest
        return matched and known

    async def _matches(self, bcrypt: bytes, password: bytes, digest: bytes) -> bool:
        """One check for all requests that bring the same credentials at the same time."""
        running = self._running.get(digest)
        if running is None:
            if len(self._running) >= MAX_WAITING_CHECKS:
                raise TooManyChecks
            loop = asyncio.get_running_loop()
            running = loop.run_in_executor(self._executor, self._check, bcrypt, password)
            self._running[digest] = running
            running.add_done_callback(lambda _: self._running.pop(digest, None))
        return await asyncio.shield(running)

    def _stand_in(self, user: bytes) -> bytes:
        number = int.from_bytes(self._digest(user, b"")[:8], "big")
        return self._hashes[self._order[number % len(self._order)]]

    def _digest(self, user: bytes, password: bytes) -> bytes:
        # The length in front, so that no two pairs of texts are one.
        return hashlib.blake2b(b"%d:%b%b" % (len(user), user, password), key=self._key).digest()


def parse_basic(authorization: str | None) -> tuple[bytes, bytes] | None:
    """Name and password of the header Authorization, or None when it holds none."""
    scheme, _, encoded = (authorization or "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        decoded = base64.b64decode(encoded.strip(), validate=True)
    except (binascii.Error, ValueError):
        return None
    user, colon, password = decoded.partition(b":")
    return (user, password) if colon else None


def check_bcrypt(hashed: bytes, password: bytes) -> bool:
    """Whether `password` is that of a bcrypt hash, in constant time for one cost."""
    from bcrypt import checkpw  # only where users are configured: it is 1 MB of a sidecar's memory

    return checkpw(password, hashed)
