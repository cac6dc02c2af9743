"""A store by its address."""

from __future__ import annotations

from sunzi.collector.records import Shard
from sunzi.collector.sqlite import SqliteStore
from sunzi.collector.store import Store

_POSTGRES = ("postgresql://", "postgres://")
_SCHEMA = "schema="


def open_store(address: str, shard: Shard | None = None, create: bool = True) -> Store:
    """The store at a path (SQLite) or at ``postgresql://…``, made if it is not there and ``create`` allows it.

    An address of PostgreSQL may name the schema to use besides what libpq knows: ``postgresql://host/name?schema=north``;
    it is ``sunzi`` otherwise.
    """
    if not address.startswith(_POSTGRES):
        return SqliteStore(address, shard, create=create)
    from sunzi.collector.postgres import PostgresStore

    address, schema = _take_schema(address)
    return PostgresStore(address, shard, create=create, schema=schema)


def _take_schema(address: str) -> tuple[str, str]:
    """The address without its schema, and the schema."""
    base, _, query = address.partition("?")
    parameters = [parameter for parameter in query.split("&") if parameter]
    rest = [parameter for parameter in parameters if not parameter.startswith(_SCHEMA)]
    named = [parameter.removeprefix(_SCHEMA) for parameter in parameters if parameter.startswith(_SCHEMA)]
    return base + ("?" + "&".join(rest) if rest else ""), (named or ["sunzi"])[-1]
