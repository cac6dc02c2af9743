"""Packages whose public names are imported on first use (PEP 562).

The stub ``__init__.pyi`` of a package lists its public names once, one a line: ``from package.module import name as
name``. Type checkers read it as it is, and :func:`attach` turns it into imports that happen when a name is first used.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module

_LINE = re.compile(r"^from ([\w.]+) import (\w+) as \2$", re.MULTILINE)


def attach(package: str, file: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The ``__getattr__`` and ``__dir__`` of a package with a stub, which give it ``__all__``, too.

    Names that the stub imports from the package itself are its subpackages. They are attributes, but not part of
    ``__all__``.

    Parameters
    ----------
    package: the package's ``__name__``.
    file: the package's ``__file__``; its stub is next to it.
    """

    @cache
    def homes() -> dict[str, str]:
        with open(f"{file.removesuffix('.py')}.pyi", encoding="utf-8") as stub:
            return {name: module for module, name in _LINE.findall(stub.read())}

    def load(name: str) -> object:
        if name == "__all__":
            return sorted(each for each, module in homes().items() if module not in (package, "."))
        home = homes().get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if home in (package, "."):
            return import_module(f"{package}.{name}")
        value = getattr(import_module(home, package), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: sorted(homes())
