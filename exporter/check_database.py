"""`check-database`: does this database offer what the configured modes need? Reads the catalogs only, and never a row.

Asked with the product's own statement and limits, so that what it says is what the service would find.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from exporter.config import Config
from exporter.database.capabilities import Problem, Requirement
from exporter.database.capability_check import CapabilityCheck
from exporter.database.connect import Connector
from exporter.database.database import Database
from exporter.database.server import OLDEST_SUPPORTED, Server, describe_server
from exporter.database.target import Target
from exporter.fairness import requirements as fairness
from exporter.queue import retention, sampler


@dataclass(frozen=True, slots=True)
class Finding:
    """What one collector needs of one relation, and what of it is missing."""

    collector: str
    requirement: Requirement
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Survey:
    """Everything that was found out. `server_problems` are sentences about the server as a whole."""

    server: Server
    schema: str
    modes: str
    findings: tuple[Finding, ...]
    server_problems: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return not self.server_problems and not any(finding.problems for finding in self.findings)


def wanted(config: Config) -> Iterator[tuple[str, Requirement]]:
    """Collector and requirement, for all that the configured modes need. `audit` is no collector: its rows are owed."""
    by_collector = {
        "fairness": fairness.requirements(config.fairness),
        "audit": fairness.audit_requirements(config.fairness),
        "queue": sampler.requirements(config.queue),
        "retention": retention.requirements(config.queue),
    }
    for collector, requirements in by_collector.items():
        for requirement in requirements:
            yield collector, requirement


async def survey(config: Config, target: Callable[[], Target]) -> Survey:
    """Connect and look. Raises `DatabaseError`."""
    connector = Connector(target, config.database)
    database = Database(connector, config.database)
    needs = {str(number): need for number, need in enumerate(wanted(config))}
    # One name per requirement, so that the answer tells them apart.
    check = CapabilityCheck(
        database,
        {number: (requirement,) for number, (_, requirement) in needs.items()},
        url_schema=lambda: connector.schema,
    )
    try:
        server = await describe_server(database)
        capabilities = await check.learn()
    finally:
        database.close()
    return Survey(
        server=server,
        schema=capabilities.schema,
        modes=f"fairness.mode={config.fairness.mode} queue.mode={config.queue.mode}",
        findings=tuple(
            Finding(collector, requirement, capabilities.problems[number])
            for number, (collector, requirement) in needs.items()
        ),
        server_problems=tuple(_server_problems(server, config)),
    )


def _server_problems(server: Server, config: Config) -> Iterator[str]:
    if server.is_too_old:
        yield f"PostgreSQL {server.major_version} is too old: {OLDEST_SUPPORTED} is the oldest that works"
    writes = any(requirement.writes for _, requirement in wanted(config))
    if writes and not server.accepts_writes:
        why = "is a standby" if server.standby else "has default_transaction_read_only on for this role"
        yield f"the configured modes write, but the server {why}: connect to the writable server"
