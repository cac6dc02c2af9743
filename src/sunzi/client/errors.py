"""The errors of a client, and how they speak. A message names the offending value and, if there is one, the fix."""

from __future__ import annotations

from fractions import Fraction
from operator import index

_LONGEST_START, _LONGEST_END = 1500, 300
_LONGEST_SHOWN = 200
_MOST_DIGITS = 50


class SunziError(Exception):
    """Base of every error that Sunzi raises on purpose.

    Very long messages are shortened in the middle: the value that they name may come from a stranger.

    >>> import sunzi
    >>> issubclass(sunzi.ReportError, sunzi.SunziError)
    True
    """

    def __init__(self, *arguments: object) -> None:
        super().__init__(*map(_shortened, arguments))


class ParameterError(SunziError, ValueError):
    """An argument is invalid.

    >>> import sunzi
    >>> sunzi.make_plan("grr", ["no", "yes"], epsilon=-1)
    Traceback (most recent call last):
        ...
    sunzi.client.errors.ParameterError: epsilon must be positive, got -1
    """


class DomainError(ParameterError):
    """A label or index is not in the domain, or the domain itself is malformed.

    >>> import sunzi
    >>> sunzi.make_plan("grr", ["no", "yes"], epsilon=1).client().report("maybe")
    Traceback (most recent call last):
        ...
    sunzi.client.errors.DomainError: label 'maybe' is not in the domain; add it, or give the domain an 'other'
    """


class PlanError(SunziError, ValueError):
    """A plan is malformed, or fails one of the checks that every client makes.

    >>> import sunzi
    >>> sunzi.Plan.from_json("{}")
    Traceback (most recent call last):
        ...
    sunzi.client.errors.PlanError: this is not a plan: it lacks "format": "sunzi-plan"
    """


class UnknownProtocolError(ParameterError, PlanError):
    """No protocol of this name is known.

    >>> import sunzi
    >>> sunzi.make_plan("gr", ["no", "yes"], epsilon=1)
    Traceback (most recent call last):
        ...
    sunzi.client.errors.UnknownProtocolError: protocol must be one of grr, ss, ss-compact, pgr, rappor, oue, mss, ...
    """


class PrivacyError(PlanError):
    """A plan's integers do not guarantee the privacy that it claims, or no integers could.

    >>> import sunzi
    >>> sunzi.make_plan("grr", ["no", "yes"], epsilon=2).client(max_epsilon=1)
    Traceback (most recent call last):
        ...
    sunzi.client.errors.PrivacyError: this plan spends epsilon 2, this client accepts at most 1
    """


class ReportError(SunziError, ValueError):
    """Bytes are not a report, or a batch of reports, of this plan; or a collector refused them for good.

    >>> import sunzi
    >>> sunzi.make_plan("grr", 10, epsilon=1).tally([b"not a report"])
    Traceback (most recent call last):
        ...
    sunzi.client.errors.ReportError: a report of this plan takes 1 byte, got 12
    """


class BudgetError(SunziError, RuntimeError):
    """A device's budget is too small for even one report. Nothing was spent and no report was made.

    >>> import sunzi
    >>> device = sunzi.client.Device("device.db", lifetime_epsilon=1, max_epsilon=2)
    >>> device.enable()
    True
    >>> plan = sunzi.make_plan("grr", ["yes", "no"], epsilon=2)
    >>> device.queue(plan, "answer", "yes", "https://collector.example/v1/collections/default/epochs/1")
    Traceback (most recent call last):
        ...
    sunzi.client.errors.BudgetError: 'answer' may spend epsilon 1 in its lifetime, and its first report costs 2; ...
    """


class RandomnessError(SunziError, RuntimeError):
    """A source of randomness cannot deliver the requested words.

    >>> from sunzi import testing
    >>> testing.ScriptedSource([1]).words(2)
    Traceback (most recent call last):
        ...
    sunzi.client.errors.RandomnessError: 2 words requested, but the script has only 1 left
    """


class StoreError(SunziError, RuntimeError):
    """A store or a collector cannot be read or written now, or refuses the operation. Nothing was counted.

    >>> from sunzi import collector
    >>> collector.open_store("missing.db", create=False)
    Traceback (most recent call last):
        ...
    sunzi.client.errors.StoreError: there is no store at missing.db; `sunzi serve` with a plan creates one
    """


def _shortened(argument: object) -> object:
    if not isinstance(argument, str) or len(argument) <= _LONGEST_START + _LONGEST_END:
        return argument
    return f"{argument[:_LONGEST_START]} … {argument[-_LONGEST_END:]}"


def shown(value: object) -> str:
    """The representation of a value for an error message, truncated if it is long."""
    try:
        text = str(value) if isinstance(value, Fraction) else repr(value)
    except ValueError:  # Python refuses to print integers of thousands of digits
        return f"a number of very many digits ({type(value).__name__})"
    if len(text) > _MOST_DIGITS and isinstance(value, (int, Fraction)):
        return f"a number of {len(text):,} digits"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def as_integer(value: object) -> int | None:
    """A whole number of any type, numpy's included; None for anything else, True and 2.0 among it."""
    try:
        return None if isinstance(value, bool) else index(value)  # type: ignore[arg-type]  # it raises TypeError
    except TypeError:
        return None


def whole_number(name: str, value: object, least: int, most: int | None = None) -> int:
    """A whole number in the given range; 2.0 and True are refused."""
    number = as_integer(value)
    if number is not None and least <= number and (most is None or number <= most):
        return number
    bounds = f"of at least {least}" if most is None else f"between {least} and {most}"
    raise ParameterError(f"{name} must be a whole number {bounds}, got {shown(value)}")
