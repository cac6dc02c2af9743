"""The exceptions and one warning. Every error that Sunzi raises on purpose is a :class:`SunziError`.

A message names the offending value and, if there is one, the fix.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST_START, _LONGEST_END = 1500, 300


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
    sunzi.errors.ParameterError: epsilon must be positive, got -1
    """


class DomainError(ParameterError):
    """A label or index is not in the domain, or the domain itself is malformed.

    >>> import sunzi
    >>> sunzi.make_plan("grr", ["no", "yes"], epsilon=1).client().report("maybe")
    Traceback (most recent call last):
        ...
    sunzi.errors.DomainError: label 'maybe' is not in the domain; add it, or give the domain an 'other'
    """


class PlanError(SunziError, ValueError):
    """A plan is malformed, or fails one of the checks that every client makes.

    >>> import sunzi
    >>> sunzi.Plan.from_json("{}")
    Traceback (most recent call last):
        ...
    sunzi.errors.PlanError: this is not a plan: it lacks "format": "sunzi-plan"
    """


class UnknownProtocolError(ParameterError, PlanError):
    """No protocol of this name is built in, registered or installed.

    >>> import sunzi
    >>> sunzi.make_plan("gr", ["no", "yes"], epsilon=1)
    Traceback (most recent call last):
        ...
    sunzi.errors.UnknownProtocolError: protocol must be one of grr, ss, ss-compact, pgr, rappor, oue, mss, ...
    """


class PlanWarning(UserWarning):
    """A new plan has far more error than it needs to; the message names the option and the fix.

    >>> import sunzi, warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", sunzi.PlanWarning)
    ...     plan = sunzi.make_plan("mss", 1000, epsilon=2, moduli=[331, 337, 347])
    Traceback (most recent call last):
        ...
    sunzi.errors.PlanWarning: moduli [331, 337, 347] have 5.47e+03 times the error of the default moduli for 1000 ...
    """


class PrivacyError(PlanError):
    """A plan's integers do not guarantee the privacy that it claims, or no integers could.

    >>> import sunzi
    >>> sunzi.make_plan("grr", ["no", "yes"], epsilon=2).client(max_epsilon=1)
    Traceback (most recent call last):
        ...
    sunzi.errors.PrivacyError: this plan spends epsilon 2, this client accepts at most 1
    """


class ReportError(SunziError, ValueError):
    """Bytes are not a report, or a batch of reports, of this plan.

    >>> import sunzi
    >>> sunzi.make_plan("grr", 10, epsilon=1).tally([b"not a report"])
    Traceback (most recent call last):
        ...
    sunzi.errors.ReportError: a report of this plan takes 1 byte, got 12
    """


class TallyError(SunziError, ValueError):
    """A tally is malformed, belongs to another plan, or breaks its own invariants.

    >>> import sunzi
    >>> sunzi.Tally.from_bytes(b"not a tally")
    Traceback (most recent call last):
        ...
    sunzi.errors.TallyError: this is not a tally
    """


class EstimateError(SunziError, ValueError):
    """The tally does not determine the requested estimate.

    >>> import sunzi
    >>> plan = sunzi.make_plan("grr", 10, epsilon=1)
    >>> plan.estimate(plan.empty_tally())
    Traceback (most recent call last):
        ...
    sunzi.errors.EstimateError: the tally holds no report yet, so there is nothing to estimate
    """


class BudgetError(SunziError, RuntimeError):
    """A report would exceed an attribute's lifetime ε. Nothing was spent and no report was made.

    >>> import sunzi
    >>> device = sunzi.device.Device("device.db", lifetime_epsilon=1, max_epsilon=1)
    >>> url = "https://collector.example/v1/collections/default/epochs"
    >>> queued = device.queue(sunzi.make_plan("grr", ["yes", "no"], epsilon=1), "answer", "yes", f"{url}/1")
    >>> device.queue(sunzi.make_plan("grr", ["yes", "no", "both"], epsilon=1), "answer", "yes", f"{url}/2")
    Traceback (most recent call last):
        ...
    sunzi.errors.BudgetError: 'answer' has spent epsilon 1 of 1 in its lifetime; this report would cost 1
    """


class RandomnessError(SunziError, RuntimeError):
    """A source of randomness cannot deliver the requested words.

    >>> from sunzi import testing
    >>> testing.ScriptedSource([1]).words(2)
    Traceback (most recent call last):
        ...
    sunzi.errors.RandomnessError: 2 words requested, but the script has only 1 left
    """


class StoreError(SunziError, RuntimeError):
    """A collector's store cannot be read or written, or refuses the operation. Nothing was counted.

    >>> from sunzi import collector
    >>> collector.open_store("missing.db", create=False)
    Traceback (most recent call last):
        ...
    sunzi.errors.StoreError: there is no store at missing.db; `sunzi serve` with a plan creates one
    """


def _shortened(argument: object) -> object:
    if not isinstance(argument, str) or len(argument) <= _LONGEST_START + _LONGEST_END:
        return argument
    return f"{argument[:_LONGEST_START]} … {argument[-_LONGEST_END:]}"


class MissingExtraError(SunziError, ImportError):
    """A feature needs an optional dependency that is not installed.

    >>> print(MissingExtraError("plotting", "plot"))
    plotting needs an extra that is not installed: pip install 'sunzi[plot]'
    """

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs an extra that is not installed: pip install 'sunzi[{extra}]'")
        self.extra = extra


@contextmanager
def needing_matplotlib(feature: str = "plotting") -> Iterator[None]:
    """Say which extra the feature needs, if an import inside does not find it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        raise MissingExtraError(feature, "plot") from None
