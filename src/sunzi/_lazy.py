"""Packages whose public names are imported on first use (PEP 562).

The stub ``__init__.pyi`` of a package lists its public names once, as ``from module import name``: type checkers read
it as it is, and :func:`attach` turns it into imports that happen when a name is first used.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path


def attach(package: str, file: str) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """The ``__getattr__``, ``__dir__`` and ``__all__`` of a package with a stub.

    Names that the stub imports from the package itself are its subpackages. They are attributes too, but not part of
    ``__all__``.

    Parameters
    ----------
    package: the package's ``__name__``.
    file: the package's ``__file__``; its stub is next to it.
    """
    stub = ast.parse(Path(file).with_suffix(".pyi").read_bytes())
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    home = {alias.name: node.module or "" for node in imports for alias in node.names}

    def load(name: str) -> object:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if home[name] == package:
            return import_module(f"{package}.{name}")
        value = getattr(import_module(home[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: sorted(home), sorted(name for name in home if home[name] != package)
