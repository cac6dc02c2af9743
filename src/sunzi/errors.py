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
    """

    def __init__(self, *arguments: object) -> None:
        super().__init__(*map(_shortened, arguments))


class ParameterError(SunziError, ValueError):
    """An argument is invalid."""


class DomainError(ParameterError):
    """A label or index is not in the domain, or the domain itself is malformed."""


class PlanError(SunziError, ValueError):
    """A plan is malformed, or fails one of the checks that every client makes."""


class UnknownProtocolError(ParameterError, PlanError):
    """No protocol of this name is built in, registered or installed."""


class PlanWarning(UserWarning):
    """A new plan has far more error than it needs to; the message names the option and the fix."""


class PrivacyError(PlanError):
    """A plan's integers do not guarantee the privacy that it claims, or no integers could."""


class ReportError(SunziError, ValueError):
    """Bytes are not a report, or a batch of reports, of this plan."""


class TallyError(SunziError, ValueError):
    """A tally is malformed, belongs to another plan, or breaks its own invariants."""


class EstimateError(SunziError, ValueError):
    """The tally does not determine the requested estimate."""


class BudgetError(SunziError, RuntimeError):
    """A report would exceed an attribute's lifetime ε. Nothing was spent and no report was made."""


class RandomnessError(SunziError, RuntimeError):
    """A source of randomness cannot deliver the requested words."""


class StoreError(SunziError, RuntimeError):
    """A collector's store cannot be read or written, or refuses the operation. Nothing was counted."""


def _shortened(argument: object) -> object:
    if not isinstance(argument, str) or len(argument) <= _LONGEST_START + _LONGEST_END:
        return argument
    return f"{argument[:_LONGEST_START]} … {argument[-_LONGEST_END:]}"


class MissingExtraError(SunziError, ImportError):
    """A feature needs an optional dependency that is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs an extra that is not installed: pip install 'sunzi[{extra}]'")
        self.extra = extra


@contextmanager
def needing_matplotlib() -> Iterator[None]:
    """Say which extra plotting needs, if an import inside does not find it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        raise MissingExtraError("plotting", "plot") from None
