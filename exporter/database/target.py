"""Where a database URL leads: the values that parsing it yields."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class TlsMode(StrEnum):
    """libpq's `sslmode`."""

    DISABLE = "disable"
    ALLOW = "allow"
    PREFER = "prefer"
    REQUIRE = "require"
    VERIFY_CA = "verify-ca"
    VERIFY_FULL = "verify-full"

    @property
    def verifies(self) -> bool:
        """Whether the server's certificate must lead to a trusted authority."""
        return self in {TlsMode.VERIFY_CA, TlsMode.VERIFY_FULL}

    @property
    def encrypts(self) -> bool:
        """Whether plain text is ruled out."""
        return self is TlsMode.REQUIRE or self.verifies


class SessionAttributes(StrEnum):
    """libpq's `target_session_attrs`: which of several servers will do."""

    ANY = "any"
    READ_WRITE = "read-write"
    READ_ONLY = "read-only"
    PRIMARY = "primary"
    STANDBY = "standby"
    PREFER_STANDBY = "prefer-standby"


class TlsVersion(StrEnum):
    """Protocol versions as libpq spells them."""

    TLS_1 = "TLSv1"
    TLS_1_1 = "TLSv1.1"
    TLS_1_2 = "TLSv1.2"
    TLS_1_3 = "TLSv1.3"


SYSTEM_AUTHORITIES = "system"


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """How to encrypt, whom to trust, who we are. Empty strings: not given. Files are read when connecting."""

    mode: TlsMode = TlsMode.PREFER
    root_certificate: str = ""
    certificate: str = ""
    key: str = ""
    key_password: str = field(default="", repr=False)
    revocation_list: str = ""
    revocation_directory: str = ""
    min_version: TlsVersion = TlsVersion.TLS_1_2
    max_version: TlsVersion | None = None
    direct: bool = False


@dataclass(frozen=True, slots=True)
class Host:
    """One server: a name, an address or the directory of a unix socket (begins with a slash)."""

    name: str
    port: int = 5432

    @property
    def is_socket(self) -> bool:
        """Whether it is reached over a unix socket: without TLS, as everywhere."""
        return self.name.startswith("/")

    def __str__(self) -> str:
        return f"[{self.name}]:{self.port}" if ":" in self.name else f"{self.name}:{self.port}"


@dataclass(frozen=True, slots=True)
class Target:
    """Everything a URL says. Its text and its repr name host, port, database and user, never the password."""

    hosts: tuple[Host, ...]
    user: str
    database: str
    password: str = field(default="", repr=False)
    tls: TlsSettings = field(default_factory=TlsSettings)
    connect_timeout_seconds: float | None = None
    schema: str = ""
    session_attributes: SessionAttributes = SessionAttributes.ANY
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f'database "{self.database}" as user "{self.user}" at {", ".join(map(str, self.hosts))}'
