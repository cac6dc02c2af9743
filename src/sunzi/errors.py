"""The errors and one warning of the operator's side; those that a client raises are in :mod:`sunzi.client.errors`."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from sunzi.client.errors import SunziError

if TYPE_CHECKING:
    from collections.abc import Iterator


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
