"""Parsing of database URLs, without I/O: one string in, one `Target` out, or every problem at once.

Accepted is what libpq, sqlx (Windmill's own driver) and managed providers hand out. Where they differ: a later `@` wins
over an earlier one, and a query parameter over the same thing in front of it, as in sqlx. No environment variable takes
part. Sentences about a problem never quote what may be a part of the password.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches

from exporter.database.target import (
    SYSTEM_AUTHORITIES,
    Host,
    SessionAttributes,
    Target,
    TlsMode,
    TlsSettings,
    TlsVersion,
)
from exporter.database.url_findings import Findings
from exporter.database.url_parameters import DROPPED, ENVIRONMENT, KEPT, ROUTING_OPTIONS
from exporter.errors import ConfigError

DEFAULT_PORT = 5432
SCHEMES = ("postgres", "postgresql")
MAX_CONNECT_TIMEOUT_SECONDS = 60.0
_SSL_FLAGS = {"true": "require", "1": "require", "false": "disable", "0": "disable"}
_OPTION = re.compile(r"(?:-c\s*|--)([A-Za-z_][\w.-]*)=((?:\\.|[^\s\\])*)\s*")
_ROUTING = re.compile(r"([a-z_]+)[=:](\S+)\s*")
_NAME = re.compile(r"[A-Za-z][\w.-]{0,40}")


def parse_url(text: str, where: str = "database.url") -> Target:
    """The target of a database URL. `where` locates it in messages. Raises `ConfigError` with all problems."""
    reader = _Reader(where)
    target = reader.read(text.strip())
    if target is None or reader.problems:
        raise ConfigError(reader.problems)
    return target


def ignored_environment(environ: Mapping[str, str]) -> str | None:
    """One warning that names the libpq variables which are set, for the exporter uses none of them."""
    names = sorted(ENVIRONMENT.intersection(environ))
    if not names:
        return None
    return f"ignoring the environment of other PostgreSQL clients ({', '.join(names)}): only the database URL counts"


class _Reader(Findings):
    """One parse of one URL."""

    def read(self, text: str) -> Target | None:
        if (split := self.split(text)) is None:
            return None
        credentials, hosts, database, query = split
        parameters = self.parameters(query)
        user, _, password = credentials.partition(":")
        user = parameters.get("user", self.decode(user, "the user name"))
        database = parameters.get("dbname", self.decode(database, "the database name")) or user
        if not user:
            self.problem('names no user: write it as "postgres://USER:PASSWORD@HOST/DATABASE"')
        schema = parameters.get("schema", "")
        return Target(
            hosts=self.hosts(hosts, parameters),
            user=user,
            database=database,
            password=parameters.get("password", self.decode(password, "the password")),
            tls=self.tls(parameters),
            connect_timeout_seconds=self.connect_timeout(parameters.get("connect_timeout", "")),
            schema=self.first_schema(self.options(parameters.get("options", "")) or schema),
            session_attributes=self.choice(SessionAttributes, "target_session_attrs", parameters)
            or SessionAttributes.ANY,
            warnings=tuple(self.warnings),
        )

    def split(self, text: str) -> tuple[str, str, str, str] | None:
        """Credentials, host list, database and query, still encoded; None when the rest cannot be trusted."""
        scheme, separator, rest = text.partition("://")
        if not text:
            self.problem("is empty")
        elif not separator or scheme.lower() not in SCHEMES:
            self.problem('is not a database URL: it must begin with "postgres://" or "postgresql://"')
        elif not text.isprintable():
            self.problem("holds a line break or another character that does not print: percent-encode it")
        else:
            before_query, _, query = rest.partition("?")
            authority, _, database = before_query.partition("/")
            credentials, _, hosts = authority.rpartition("@")
            if "@" not in database and (credentials or "@" not in query or _all_known(query)):
                return credentials, hosts, database, query
            self.problem('has a "/", "?" or "@" in the user name or the password: percent-encode it (%2F, %3F, %40)')
        return None

    def parameters(self, query: str) -> dict[str, str]:
        """The kept parameters, decoded, by the name they have here."""
        found: dict[str, str] = {}
        spelled_options = ""
        secret = "password=" in query
        for number, pair in enumerate(filter(None, query.split("&")), start=1):
            raw_name, equals, raw_value = pair.partition("=")
            name = self.decode(raw_name, f"the name of parameter {number}")
            if name.startswith("options[") and name.endswith("]"):
                spelled_options += f" -c {name[8:-1]}={self.decode(raw_value, name)}"
            elif name in DROPPED:
                self.dropped(name, DROPPED[name])
            elif name not in KEPT:
                self.unknown(name, number, secret)
            elif not equals:
                self.problem(f"{name} has no value: write {name}=VALUE")
            else:
                # A plus sign is a space to sqlx and itself to libpq; only here is the first what people mean.
                value = self.decode(raw_value.replace("+", " ") if name == "options" else raw_value, name)
                if found.setdefault(KEPT[name], value) != value:
                    self.problem(f"{name} is given twice, with different values")
        if spelled_options:
            found["options"] = found.get("options", "") + spelled_options
        return found

    def unknown(self, name: str, number: int, secret: bool) -> None:
        if secret or not _NAME.fullmatch(name):
            self.problem(f'parameter {number} is unknown (an "&" in a value must be written as %26)')
            return
        near = get_close_matches(name, [*KEPT, *DROPPED], n=1, cutoff=0.6)
        self.problem(f'unknown parameter "{name}"' + (f', did you mean "{near[0]}"?' if near else ""))

    def hosts(self, text: str, parameters: Mapping[str, str]) -> tuple[Host, ...]:
        if address := parameters.get("hostaddr"):
            if "host" in parameters or text:
                self.dropped("hostaddr", "the host name is used")
            else:
                text = ",".join(f"[{item}]" if ":" in item else item for item in address.split(","))
        pairs = [self.host_and_port(item, number) for number, item in enumerate(text.split(","), start=1)]
        if named := parameters.get("host"):
            pairs = [(item.strip("[]") or "localhost", pairs[0][1]) for item in named.split(",")]
        ports = parameters["port"].split(",") if parameters.get("port") else [port for _, port in pairs]
        if len(ports) == 1:
            ports *= len(pairs)
        if len(ports) != len(pairs):
            self.problem(f"names {len(pairs)} hosts but {len(ports)} ports")
        return tuple(
            Host(name, self.port(port, number))
            for number, ((name, _), port) in enumerate(zip(pairs, ports, strict=False), start=1)
        )

    def host_and_port(self, item: str, number: int) -> tuple[str, str]:
        if item.startswith("["):
            name, bracket, port = item[1:].partition("]")
            if not bracket or port[:1] not in {"", ":"}:
                self.problem(f"host {number} has an unfinished IPv6 address: write [ADDRESS]:PORT")
            port = port[1:]
        else:
            name, _, port = item.partition(":")
            if ":" in port:
                self.problem(f"host {number} has more than one colon: write an IPv6 address as [ADDRESS]:PORT")
                port = ""
        return self.decode(name, f"host {number}") or "localhost", self.decode(port, f"the port of host {number}")

    def port(self, text: str, number: int) -> int:
        if not text:
            return DEFAULT_PORT
        if text.isascii() and text.isdecimal() and 1 <= int(text[:6]) <= 65535:
            return int(text)
        # Not quoted: behind a password with a slash in it, the "port" is the password.
        self.problem(f"the port of host {number} is not a number from 1 to 65535")
        return DEFAULT_PORT

    def connect_timeout(self, text: str) -> float | None:
        if not text:
            return None
        if not re.fullmatch(r"\d{1,6}", text, re.ASCII):
            self.problem("connect_timeout is not a whole number of seconds")
            return None
        if int(text) == 0:
            self.dropped("connect_timeout=0", "connecting always has a deadline")
        return min(float(text), MAX_CONNECT_TIMEOUT_SECONDS) or None

    def options(self, text: str) -> str:
        """The `search_path` in libpq's `options`; other settings are dropped by name."""
        schema, position, text = "", 0, text.strip()
        while position < len(text):
            if match := _OPTION.match(text, position):
                name, value = match[1], re.sub(r"\\(.)", r"\1", match[2])
                if name == "search_path":
                    schema = value
                else:
                    self.dropped(f"options {name}", "the exporter sends no settings when it connects")
            elif (match := _ROUTING.match(text, position)) and match[1] in ROUTING_OPTIONS:
                self.dropped(f"options {match[1]}", "the host name says the same, through TLS")
            else:
                self.problem('options cannot be read: expected "-c NAME=VALUE", percent-encoded')
                break
            position = match.end()
        return schema

    def first_schema(self, search_path: str) -> str:
        schemas = [item.strip().strip('"') for item in search_path.split(",")]
        schemas = [item for item in schemas if item and item != "$user"]
        if len(schemas) > 1:
            self.warnings.append(f'{self.where}: of several schemas only the first, "{schemas[0]}", is used')
        return schemas[0] if schemas else ""

    def tls(self, parameters: Mapping[str, str]) -> TlsSettings:
        settings = dict(parameters)
        settings["sslmode"] = _SSL_FLAGS.get(settings.get("sslmode", "").lower(), settings.get("sslmode", ""))
        if settings.get("requiressl") == "1":
            settings["sslmode"] = settings["sslmode"] or TlsMode.REQUIRE
        root = settings.get("sslrootcert", "")
        mode = self.choice(TlsMode, "sslmode", settings)
        direct = settings.get("sslnegotiation", "postgres")
        if mode is None:
            mode = TlsMode.VERIFY_FULL if root == SYSTEM_AUTHORITIES else TlsMode.PREFER
        if mode.verifies and not root:
            self.problem(
                f"sslmode={mode} needs sslrootcert=FILE, or sslrootcert=system for the authorities of this system"
            )
        if root == SYSTEM_AUTHORITIES and mode is not TlsMode.VERIFY_FULL:
            self.problem(f"sslrootcert=system needs sslmode=verify-full, not {mode}")
        if direct not in {"postgres", "direct"}:
            self.problem('sslnegotiation must be "postgres" or "direct"')
        elif direct == "direct" and not mode.encrypts:
            self.problem(f"sslnegotiation=direct needs sslmode=require or stricter, not {mode}")
        if settings.get("sslkey") and not settings.get("sslcert"):
            self.problem("sslkey needs sslcert, the certificate that belongs to it")
        lowest = self.choice(TlsVersion, "ssl_min_protocol_version", settings) or TlsVersion.TLS_1_2
        highest = self.choice(TlsVersion, "ssl_max_protocol_version", settings)
        if highest is not None and highest < lowest:
            self.problem(f"ssl_max_protocol_version={highest} is below the lowest version, {lowest}")
        return TlsSettings(
            mode=mode,
            root_certificate=root,
            certificate=settings.get("sslcert", ""),
            key=settings.get("sslkey", ""),
            key_password=settings.get("sslpassword", ""),
            revocation_list=settings.get("sslcrl", ""),
            revocation_directory=settings.get("sslcrldir", ""),
            min_version=lowest,
            max_version=highest,
            direct=direct == "direct",
        )


def _all_known(query: str) -> bool:
    names = (pair.partition("=")[0] for pair in query.split("&") if pair)
    return all(name in KEPT or name in DROPPED for name in names)
