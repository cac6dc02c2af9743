"""The list of experiments; each is in the file of its name and defines ``EXPERIMENT``."""

from __future__ import annotations

from importlib import import_module

from sunzi import ParameterError

from .experiment import Experiment

NAMES: tuple[str, ...] = (
    "mse",
    "error-cdf",
    "other-sizes",
    "analytical-mse",
    "moduli-per-trial",
    "lengths",
    "ridge",
    "bits",
    "runtime",
    "comparison",
    "dra",
    "analytical-dra",
    "geometry",
    "exact",
)
"""In the order of the report."""


def find(name: str) -> Experiment:
    """The experiment of a name."""
    if name not in NAMES:
        raise ParameterError(f"the experiment must be one of {', '.join(NAMES)}, or all; got {name!r}")
    experiment: Experiment = import_module(f".{name.replace('-', '_')}", __package__).EXPERIMENT
    return experiment


def find_all(names: list[str]) -> list[Experiment]:
    """Experiments in the order of the report; ``all`` means each of them."""
    wanted = [find(name).name for name in names if name != "all"]
    return [find(name) for name in NAMES if "all" in names or name in wanted]
