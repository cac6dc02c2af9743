"""Lets the proofs import their helpers: test directories are no packages, so the two modules get names of their own."""

import importlib.util
import sys
from pathlib import Path


def _load(name):
    specification = importlib.util.spec_from_file_location(f"proof_{name}", Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module
    specification.loader.exec_module(module)


_load("oracle")
_load("statistics")
