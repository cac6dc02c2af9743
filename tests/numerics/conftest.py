"""Systems that several modules test with. Test directories are no packages, so the helpers get a name of their own."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from sunzi.numerics import toeplitz_system
from sunzi.numerics.residues import ToeplitzGram

_specification = importlib.util.spec_from_file_location("numerics_systems", Path(__file__).with_name("systems.py"))
systems = importlib.util.module_from_spec(_specification)
sys.modules[_specification.name] = systems
_specification.loader.exec_module(systems)


@pytest.fixture(
    params=[(size, seed) for size in systems.SIZES for seed in systems.SEEDS], ids=lambda p: f"k{p[0]}-seed{p[1]}"
)
def system(request: pytest.FixtureRequest) -> tuple[ToeplitzGram, NDArray[np.float64]]:
    size, seed = request.param
    moduli, weights = systems.random_system(size, seed)
    return ToeplitzGram(size, moduli, weights), systems.gram(size, moduli, weights)


@pytest.fixture(params=["direct", "iterative"])
def first_column_solver(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything must hold whichever way the first column of the inverse was found."""
    if request.param == "iterative":
        monkeypatch.setattr(toeplitz_system, "_LEVINSON_LIMIT", 0)
