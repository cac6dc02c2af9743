"""Objects that stay as they were made."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn


class Frozen:
    """A class whose attributes are set in ``__init__`` and by ``functools.cached_property``, and by nothing else.

    What was checked when an object was made, such as the integers that its privacy rests on, so stays true of it.
    Arrays among the attributes can be written to unless they say otherwise. Subclasses have no ``__slots__``.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = _closing(cls.__init__)  # type: ignore[method-assign]  # the same, and closes the object

    def __setattr__(self, name: str, value: object) -> None:
        if "_is_made" in vars(self):
            self._refuse(name)
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        if "_is_made" in vars(self):
            self._refuse(name)
        super().__delattr__(name)

    def _refuse(self, name: str) -> NoReturn:
        kind = type(self).__name__
        raise AttributeError(
            f"{name} of {kind} cannot be changed: what it was checked for might not hold; make another"
        )


def _closing(initialise: Callable[..., None]) -> Callable[..., None]:
    """The same ``__init__``; the outermost one, which may have called others, leaves the object frozen."""

    @wraps(initialise)
    def initialise_and_close(self: Frozen, *arguments: Any, **options: Any) -> None:
        initialise(self, *arguments, **options)
        if type(self).__init__ is initialise_and_close:
            vars(self)["_is_made"] = True

    return initialise_and_close
