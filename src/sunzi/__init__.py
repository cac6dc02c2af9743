"""Frequency estimation under local differential privacy.

>>> import sunzi
>>> plan = sunzi.make_plan("mss", domain=22000, epsilon=2)
>>> reports = plan.client().report_batch([3, 1, 4, 1, 5])
>>> estimate = plan.estimate(plan.tally(reports))

Names are loaded when they are first used (PEP 562): ``import sunzi`` alone imports neither numpy nor scipy.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from sunzi._version import __version__

if TYPE_CHECKING:
    from sunzi.client import Client
    from sunzi.domain import Domain
    from sunzi.errors import (
        BudgetError,
        DomainError,
        EstimateError,
        MissingExtraError,
        ParameterError,
        PlanError,
        PrivacyError,
        RandomnessError,
        ReportError,
        StoreError,
        SunziError,
        TallyError,
    )
    from sunzi.estimate import Estimate
    from sunzi.plan import Plan, load_plan, make_plan
    from sunzi.protocols.catalogue import catalogue
    from sunzi.tally import Tally, load_tally

__all__ = [
    "BudgetError",
    "Client",
    "Domain",
    "DomainError",
    "Estimate",
    "EstimateError",
    "MissingExtraError",
    "ParameterError",
    "Plan",
    "PlanError",
    "PrivacyError",
    "RandomnessError",
    "ReportError",
    "StoreError",
    "SunziError",
    "Tally",
    "TallyError",
    "__version__",
    "catalogue",
    "load_plan",
    "load_tally",
    "make_plan",
]

_NAMES_BY_HOME = {
    "sunzi.client": ("Client",),
    "sunzi.domain": ("Domain",),
    "sunzi.errors": (
        "BudgetError",
        "DomainError",
        "EstimateError",
        "MissingExtraError",
        "ParameterError",
        "PlanError",
        "PrivacyError",
        "RandomnessError",
        "ReportError",
        "StoreError",
        "SunziError",
        "TallyError",
    ),
    "sunzi.estimate": ("Estimate",),
    "sunzi.plan": ("Plan", "load_plan", "make_plan"),
    "sunzi.protocols.catalogue": ("catalogue",),
    "sunzi.tally": ("Tally", "load_tally"),
}
_HOME_BY_NAME = {name: home for home, names in _NAMES_BY_HOME.items() for name in names}


# Hidden from type checkers, which would otherwise take every misspelt name for an object.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import the home of a public name on first use, and keep the name here from then on."""
        if name not in _HOME_BY_NAME:
            raise AttributeError(f"module 'sunzi' has no attribute {name!r}")
        value = getattr(import_module(_HOME_BY_NAME[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """List the public names, whether loaded yet or not."""
    return sorted(__all__)
