"""The plan: the public terms of one collection, read from JSON with every number checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from .domains.labels import Domain, read_domain
from .epsilon import read_epsilon
from .errors import ParameterError, PlanError, UnknownProtocolError, shown
from .groups import DeclaredGroups, declare_groups
from .protocols.protocol import Protocol
from .strict_json import canonical_json, keys_of, parse_json

if TYPE_CHECKING:
    from fractions import Fraction

    from .client import Client
    from .epsilon import Epsilon
    from .randomness import WordSource

PlanKind = TypeVar("PlanKind", bound="Plan")

FORMAT = "sunzi-plan"
VERSION = 1
_KEYS = ("format", "version", "protocol", "epsilon", "domain", "parameters")
# Only what a plan names is loaded.
_PROTOCOLS = {
    "grr": ("block", "GeneralizedRandomizedResponse"),
    "ss": ("block", "SubsetSelection"),
    "ss-compact": ("block", "CompactSubsetSelection"),
    "pgr": ("block", "ProjectiveGeometryResponse"),
    "rappor": ("unary", "Rappor"),
    "oue": ("unary", "OptimalUnaryEncoding"),
    "mss": ("modular", "ModularSubsetSelection"),
    "mss-compact": ("modular", "CompactModularSubsetSelection"),
    "ordered": ("ordered", "OrderedViews"),
    "tables": ("tables", "TableViews"),
    "number": ("number", "RoundedNumbers"),
    "prefixes": ("prefixes", "PrefixViews"),
}
_DOMAINS = {
    "values": ("labels", "Domain"),
    "range": ("ranges", "OrderedDomain"),
    "attributes": ("records", "RecordDomain"),
    "symbols": ("texts", "OpenDomain"),
}


class Plan:
    """The public terms of one collection: protocol, ε, domain, every integer of the randomiser, the public groups that
    uploads may name, and the lifetime budget of devices that estimates reckon with. Immutable.

    :func:`load_plan` and :meth:`from_json` trust nothing that they read: the thresholds must be those that ε gives.
    Two plans are equal if and only if their fingerprints are.

    >>> from sunzi.client import load_plan
    >>> plan = load_plan("plan.json")
    >>> len(plan.client().report("Firefox"))
    1
    """

    def __init__(
        self,
        protocol: Protocol,
        domain: Domain,
        groups: Mapping[str, Iterable[str]] | None = None,
        lifetime: Fraction | None = None,
    ) -> None:
        if lifetime is not None and lifetime < protocol.epsilon:
            raise PlanError(f"a lifetime of {lifetime} does not pay for one report of epsilon {protocol.epsilon}")
        self._protocol, self._domain, self._lifetime = protocol, domain, lifetime
        self._groups = dict(declare_groups(groups or {}))

    @staticmethod
    def protocol_kind(name: str) -> type[Protocol]:
        """The class of a protocol; UnknownProtocolError if there is none of this name."""
        if name not in _PROTOCOLS:
            raise UnknownProtocolError(f"protocol must be one of {', '.join(_PROTOCOLS)}; got {shown(name)}")
        module, kind = _PROTOCOLS[name]
        return cast("type[Protocol]", getattr(import_module(f".protocols.{module}", __package__), kind))

    @staticmethod
    def domain_kind(key: str) -> type[Domain]:
        """The class of domains of "values", a "range", "attributes" or "symbols"."""
        module, kind = _DOMAINS[key]
        return cast("type[Domain]", getattr(import_module(f".domains.{module}", __package__), kind))

    @classmethod
    def from_json(cls, data: bytes | str) -> Self:
        """The plan described by the text of a plan file."""
        return cls.from_terms(parse_json(data.encode() if isinstance(data, str) else data))

    @classmethod
    def from_terms(cls, value: object) -> Self:
        """The plan of a parsed plan file; PlanError or PrivacyError says what is wrong with it."""
        if not isinstance(value, dict) or value.get("format") != FORMAT:
            raise PlanError(f'this is not a plan: it lacks "format": "{FORMAT}"')
        if type(value.get("version")) is not int or value["version"] != VERSION:
            raise PlanError(
                f"plan version {shown(value.get('version'))} is not known here; this release reads version {VERSION}"
            )
        keys_of("a plan", value, _KEYS, ["groups", "lifetime"])
        if value.get("groups") == {}:
            raise PlanError("groups must not be empty; omit them")
        name, parameters = value["protocol"], value["parameters"]
        if not isinstance(name, str) or not isinstance(parameters, dict):
            raise PlanError("protocol must be a name and parameters an object")
        canonical, epsilon = canonical_json(value), read_epsilon(value["epsilon"])
        domain = read_domain(value["domain"], cls.domain_kind)
        try:
            kind = cls.protocol_kind(name)
            kind.check_domain(domain)
            protocol = kind.from_parameters(domain.size, epsilon, parameters)
            protocol.check_attributes(domain)
        except UnknownProtocolError:
            raise
        except ParameterError as error:
            raise PlanError(str(error)) from None
        lifetime = read_epsilon(value["lifetime"]) if "lifetime" in value else None
        plan = cls(protocol, domain, value.get("groups", {}), lifetime)
        if plan.canonical != canonical:  # to Python, true is 1
            raise PlanError(f"this {name} plan is not in canonical form")
        return plan

    def with_labels(self, path: str | Path) -> Self:
        """The same plan with its labels, read from the file that the plan names by its hash."""
        return type(self)(self._protocol, self._domain.attach(path), self._groups, self._lifetime)

    @property
    def protocol(self) -> Protocol:
        """The randomiser."""
        return self._protocol

    @property
    def domain(self) -> Domain:
        """The values, as labels and indices."""
        return self._domain

    @property
    def groups(self) -> DeclaredGroups:
        """The public groups that uploads may name: for every attribute its values."""
        return MappingProxyType(self._groups)

    @property
    def lifetime(self) -> Fraction | None:
        """The budget that the operator reckons with for the lifetime of a device, which then repeats its latest report.
        It is a statement: only the application sets the budget of a device.
        """
        return self._lifetime

    @property
    def epsilon(self) -> Fraction:
        """The privacy budget of one report, exactly."""
        return self._protocol.epsilon

    def to_json(self) -> dict[str, Any]:
        """The plan as a new JSON value."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "protocol": self._protocol.name,
            "epsilon": str(self.epsilon),
            "domain": self._domain.to_json(),
            "parameters": self._protocol.parameters(),
            **({"groups": {name: list(values) for name, values in self._groups.items()}} if self._groups else {}),
            **({} if self._lifetime is None else {"lifetime": str(self._lifetime)}),
        }

    @cached_property
    def canonical(self) -> bytes:
        """The canonical form (RFC 8785) that the fingerprint is computed from."""
        return canonical_json(self.to_json())

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the canonical form; every batch of reports and every tally carries it."""
        return sha256(self.canonical).digest()

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the plan's canonical form, in hexadecimal."""
        return self.digest.hex()

    def client(
        self,
        *,
        source: WordSource | None = None,
        max_epsilon: Epsilon | None = None,
        fingerprint: str | bytes | None = None,
        **limits: int,
    ) -> Client:
        """A client, as it runs on a device.

        Parameters
        ----------
        source: a source of random words other than the operating system, for tests and proofs.
        max_epsilon: refuse the plan if it spends more than this.
        fingerprint: refuse the plan if its fingerprint differs.
        limits: ``max_bits`` and ``max_work``, what one report may cost the device.
        """
        from .client import Client

        return Client(self, source=source, max_epsilon=max_epsilon, fingerprint=fingerprint, **limits)

    def __eq__(self, other: object) -> bool:
        """Whether both have the same fingerprint."""
        return isinstance(other, Plan) and self.digest == other.digest

    def __hash__(self) -> int:
        """A hash of the fingerprint."""
        return hash(self.digest)

    def __repr__(self) -> str:
        """The terms in one line."""
        return f"Plan({self._protocol.name}, {self._domain!r}, epsilon {self.epsilon}, {self.fingerprint[:16]}…)"


def load_plan(path: str | Path, *, labels: str | Path | None = None) -> Plan:
    """Read a plan file and check everything that a client's privacy depends on.

    Parameters
    ----------
    path: the plan file.
    labels: the label file, for a plan that names it by its hash.

    >>> from sunzi.client import load_plan
    >>> load_plan("plan.json").epsilon
    Fraction(1, 1)
    """
    return read_plan(path, labels, Plan)


def read_plan(path: str | Path, labels: str | Path | None, kind: type[PlanKind]) -> PlanKind:
    """:func:`load_plan` for a kind of plans."""
    data = Path(path).read_bytes()
    if data.startswith(b"SUNZI"):
        raise PlanError(f"{path}: this is a file of reports or a tally, not a plan")
    try:
        plan = kind.from_json(data)
        return plan if labels is None else plan.with_labels(labels)
    except PlanError as error:
        raise type(error)(f"{path}: {error}") from None
