"""The contract: the public terms of one collection, as JSON with a fingerprint, independent of any protocol code."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sunzi.atomic_files import write_atomically
from sunzi.domains.labels import Domain
from sunzi.domains.records import read_domain
from sunzi.errors import ParameterError, PlanError
from sunzi.groups import DeclaredGroups, declare_groups
from sunzi.numerics.thresholds import parse_epsilon

FORMAT = "sunzi-plan"
VERSION = 1
_KEYS = ("format", "version", "protocol", "epsilon", "domain", "parameters")
_OPTIONAL_KEYS = ("groups",)
_LARGEST_NUMBER = (1 << 53) - 1
_DEEPEST = 16
_FRACTION = re.compile("[0-9]{1,19}(/[0-9]{1,19})?")


@dataclass(frozen=True)
class Contract:
    """All that a client must know: protocol, ε as a rational, domain, every integer of the randomiser, and the public
    groups that uploads may name. Immutable.

    Numbers in ``parameters`` are integers below 2^53; larger ones are decimal strings. Its objects are read-only
    mappings and its lists are tuples, so the terms cannot change under their fingerprint.
    """

    protocol: str
    epsilon: Fraction
    domain: Domain
    parameters: Mapping[str, Any]
    groups: DeclaredGroups = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Take a read-only copy of the parameters and groups."""
        vars(self).update(parameters=_read_only(self.parameters), groups=declare_groups(self.groups))

    def __getstate__(self) -> dict[str, Any]:
        """Read-only mappings cannot be pickled, plain ones can."""
        return {**vars(self), "parameters": _plain(self.parameters), "groups": dict(self.groups)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """The inverse of :meth:`__getstate__`."""
        vars(self).update(state, parameters=_read_only(state["parameters"]), groups=_read_only(state["groups"]))

    def to_json(self) -> dict[str, Any]:
        """The plan as a new JSON value."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "protocol": self.protocol,
            "epsilon": str(self.epsilon),
            "domain": self.domain.to_json(),
            "parameters": _plain(self.parameters),
            **({"groups": _plain(self.groups)} if self.groups else {}),
        }

    @cached_property
    def canonical(self) -> bytes:
        """The canonical form (RFC 8785) that the fingerprint is computed from."""
        return canonical_json(self.to_json())

    @cached_property
    def fingerprint(self) -> bytes:
        """SHA-256 of the canonical form; every batch of reports and every tally carries it."""
        return hashlib.sha256(self.canonical).digest()

    def save(self, path: str | Path) -> None:
        """Write the plan file atomically, indented for reading."""
        text = json.dumps(self.to_json(), ensure_ascii=False, indent=1) + "\n"
        write_atomically(path, text.encode())

    @classmethod
    def from_json(cls, value: object) -> Contract:
        """Check the outer structure; the protocol checks ``parameters``."""
        if not isinstance(value, dict) or value.get("format") != FORMAT:
            raise PlanError(f'this is not a plan: it lacks "format": "{FORMAT}"')
        if type(value.get("version")) is not int or value["version"] != VERSION:
            raise PlanError(
                f"plan version {value.get('version')!r} is not known here; this release reads version {VERSION}"
            )
        if set(value) - set(_OPTIONAL_KEYS) != set(_KEYS):
            raise PlanError(
                f"a plan has exactly the keys {list(_KEYS)}, and may have {list(_OPTIONAL_KEYS)}; got {sorted(value)}"
            )
        if value.get("groups") == {}:
            raise PlanError("groups must not be empty; omit them")
        protocol, parameters = value["protocol"], value["parameters"]
        if not isinstance(protocol, str) or not isinstance(parameters, dict):
            raise PlanError("protocol must be a name and parameters an object")
        canonical_json(value)
        return cls(
            protocol, _epsilon(value["epsilon"]), read_domain(value["domain"]), parameters, value.get("groups", {})
        )

    @classmethod
    def load(cls, path: str | Path) -> Contract:
        """Read a plan file."""
        data = Path(path).read_bytes()
        if data.startswith(b"SUNZI"):
            raise PlanError(f"{path}: this is a file of reports or a tally, not a plan")
        try:
            return cls.from_json(parse_json(data))
        except PlanError as error:
            raise type(error)(f"{path}: {error}") from None


def _read_only(value: Any) -> Any:
    """A read-only copy of a JSON value."""
    if isinstance(value, Mapping):
        return MappingProxyType({key: _read_only(item) for key, item in value.items()})
    return tuple(map(_read_only, value)) if isinstance(value, (list, tuple)) else value


def _plain(value: Any) -> Any:
    """The inverse of :func:`_read_only`: dictionaries and lists."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _epsilon(text: object) -> Fraction:
    """ε from a reduced fraction such as "2" or "1/2": each ε has exactly one spelling."""
    try:
        # Only such text reaches the parser, which would spend hours on "1e999999999".
        epsilon = parse_epsilon(text) if isinstance(text, str) and _FRACTION.fullmatch(text) else None
    except ParameterError as error:
        raise PlanError(str(error)) from None
    if epsilon is None or str(epsilon) != text:
        raise PlanError(f'epsilon must be a reduced fraction as text, such as "2" or "1/2", got {text!r}')
    return epsilon


def parse_json(data: bytes) -> object:
    """Strict JSON: UTF-8, no duplicate keys, no NaN."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in pairs]
        if len(set(keys)) != len(keys):
            raise PlanError(f"a key occurs twice among {keys}")
        return dict(pairs)

    def refuse(constant: str) -> object:
        raise PlanError(f"{constant} is not JSON")

    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=unique, parse_constant=refuse)
    except PlanError:
        raise
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, or a number of thousands of digits
        raise PlanError(f"not JSON: {error}") from None


def canonical_json(value: object) -> bytes:
    """RFC 8785 for values without fractions: sorted ASCII keys, no spaces, shortest escapes, integers below 2^53."""
    _check_canonical(value, _DEEPEST)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()


def _check_canonical(value: object, depth: int) -> None:
    if depth == 0:
        raise PlanError(f"a plan nests at most {_DEEPEST} levels deep")
    if isinstance(value, dict):
        for key, item in value.items():
            if not (isinstance(key, str) and key.isascii()):
                raise PlanError(f"a key must be ASCII text, got {key!r}")
            _check_canonical(item, depth - 1)
    elif isinstance(value, list):
        for item in value:
            _check_canonical(item, depth - 1)
    elif isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise PlanError(f"text must be valid Unicode, got {value!r}") from None
    elif type(value) is int:
        if abs(value) > _LARGEST_NUMBER:
            raise PlanError(f"integers of 2^53 and more are written as decimal strings, got {value}")
    elif not isinstance(value, bool):
        raise PlanError(f"a plan holds text, whole numbers, true, false, lists and objects; got {value!r}")
