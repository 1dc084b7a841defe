"""What a collector needs of the database, what this database offers, and the difference in sentences.

Declared next to the collector's statements as `Requirement`s; answered by one statement on the catalogs for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from exporter.database.row_security import Policy, judge
from exporter.database.statement import quote_identifier, quote_relation, split_relation


@dataclass(frozen=True, slots=True)
class Requirement:
    """What one collector needs of one relation (table, view or sequence).

    `relation` lives in Windmill's schema, or is given as `schema.relation`. `select`, `insert` and `update` name the
    columns that the statements name; a `FOR UPDATE` needs one column in `update`. `usage` is for a sequence.
    `operations` narrows what row security must let through to the rows whose column `operation` is one of these
    (the audit tables); without it every row must be visible. `advice` says what to do where a GRANT on the relation
    would be wrong.
    """

    relation: str
    select: tuple[str, ...] = ()
    insert: tuple[str, ...] = ()
    update: tuple[str, ...] = ()
    delete: bool = False
    usage: bool = False
    operations: tuple[str, ...] = ()
    advice: str = ""

    @property
    def privileges(self) -> tuple[str, ...]:
        """The privileges on rows that it needs."""
        wanted = {"SELECT": self.select, "INSERT": self.insert, "UPDATE": self.update, "DELETE": self.delete}
        return tuple(name for name, needed in wanted.items() if needed)

    @property
    def writes(self) -> bool:
        """Whether it needs a server that accepts writes."""
        return bool(self.insert or self.update or self.delete or self.usage)


@dataclass(frozen=True, slots=True)
class Offer:
    """What the database offers of one required relation, to the role that we are connected as."""

    schema: str
    connection_schema: str
    role: str
    schema_exists: bool
    schema_usable: bool
    exists: bool
    absent_columns: tuple[str, ...]
    denied_columns: tuple[tuple[str, str], ...]
    delete_denied: bool
    usage_denied: bool
    row_security: bool
    policies: tuple[Policy, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is missing: a bounded reason, what it is, and the SQL that cures it (empty: none is known)."""

    reason: str
    what: str
    remedy: str = ""

    @property
    def sentence(self) -> str:
        """What is missing, and what to run."""
        return f"{self.what}: {self.remedy}" if self.remedy else self.what


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What was found out at once about all collectors: empty tuples mean that a collector can work."""

    schema: str
    role: str
    problems: Mapping[str, tuple[Problem, ...]]

    @property
    def complete(self) -> bool:
        """Whether nothing is missing for anybody."""
        return not any(self.problems.values())


def encode_requirements(requirements: Sequence[Requirement]) -> str:
    """The requirements as the JSON array that `capabilities.sql` reads."""
    items = []
    for requirement in requirements:
        schema, relation = split_relation(requirement.relation, "")
        items.append(
            {
                "schema": schema or None,
                "relation": relation,
                "select": requirement.select,
                "insert": requirement.insert,
                "update": requirement.update,
                "delete": requirement.delete,
                "usage": requirement.usage,
            }
        )
    return msgspec.json.encode(items).decode()


def problems_of(requirement: Requirement, offer: Offer) -> tuple[Problem, ...]:
    """What the database lacks for `requirement`, most basic first; nothing finer where the basis is missing."""
    plain = ".".join(split_relation(requirement.relation, offer.schema))
    if not offer.schema_exists:
        own = f'the own schema of this connection is "{offer.connection_schema}"'
        text = f'schema "{offer.schema}" does not exist in this database; {own}'
        return (Problem("missing_schema", text),)
    role = quote_identifier(offer.role)
    if not offer.schema_usable:
        grant = f"GRANT USAGE ON SCHEMA {quote_identifier(offer.schema)} TO {role}"
        return (Problem("missing_privilege", f'role "{offer.role}" may not use schema "{offer.schema}"', grant),)
    if not offer.exists:
        return (Problem("missing_table", f"{plain} does not exist: is this the database and the schema of Windmill?"),)
    return (
        *(
            Problem("missing_column", f"column {plain}.{column} does not exist (another version of Windmill?)")
            for column in offer.absent_columns
        ),
        *_denied(requirement, offer, plain, role),
        *_hidden(requirement, offer, plain, role),
    )


def _denied(requirement: Requirement, offer: Offer, plain: str, role: str) -> Iterator[Problem]:
    relation = quote_relation(requirement.relation, offer.schema)
    by_privilege: dict[str, list[str]] = {}
    for privilege, column in offer.denied_columns:
        by_privilege.setdefault(privilege, []).append(column)
    grants = [f"{name} ({', '.join(map(quote_identifier, columns))})" for name, columns in by_privilege.items()]
    grants += ["DELETE"] if offer.delete_denied else []
    if grants:
        text = f'role "{offer.role}" lacks privileges on {plain}'
        if requirement.advice:
            yield Problem("missing_privilege", f"{text}; {requirement.advice}")
        else:
            yield Problem("missing_privilege", text, f"GRANT {', '.join(grants)} ON {relation} TO {role}")
    if offer.usage_denied:
        grant = f"GRANT USAGE ON SEQUENCE {relation} TO {role}"
        yield Problem("missing_privilege", f'role "{offer.role}" may not draw from {plain}', grant)


def _hidden(requirement: Requirement, offer: Offer, plain: str, role: str) -> Iterator[Problem]:
    if not offer.row_security:
        return
    relation = quote_relation(requirement.relation, offer.schema)
    rows = "true"
    if requirement.operations:
        rows = "operation IN ('" + "', '".join(requirement.operations) + "')"
    for privilege in requirement.privileges:
        verdict = judge(offer.policies, privilege, requirement.operations)
        if verdict.passes:
            continue
        what = "hides rows of" if privilege == "SELECT" else f"refuses {privilege} on"
        text = f'row security {what} {plain} for role "{offer.role}"'
        if verdict.restrictive:
            names = ", ".join(verdict.restrictive)
            text += f": exempt the role from restrictive policy {names} (ALTER POLICY ... TO ...)"
            yield Problem("row_security", text)
            continue
        clauses = {"INSERT": f"WITH CHECK ({rows})", "UPDATE": f"USING ({rows}) WITH CHECK ({rows})"}
        clause = clauses.get(privilege, f"USING ({rows})")
        name = quote_identifier(_policy_name(offer.role, privilege))
        yield Problem("row_security", text, f"CREATE POLICY {name} ON {relation} FOR {privilege} TO {role} {clause}")


def _policy_name(role: str, privilege: str) -> str:
    """As `deploy/sql` names them; PostgreSQL would cut a longer name at 63 bytes, and with it what sets them apart."""
    return f"{role.encode()[:56].decode(errors='ignore')}_{privilege.lower()}"
