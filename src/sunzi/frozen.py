"""Objects that stay as they were made."""

from __future__ import annotations

from abc import ABCMeta
from typing import Any, NoReturn


class _Freezing(ABCMeta):
    """Closes an object once its ``__init__``, the most derived one, has returned."""

    def __call__(cls, *arguments: Any, **options: Any) -> Any:
        made = super().__call__(*arguments, **options)
        made.__dict__["_is_made"] = True
        return made


class Frozen(metaclass=_Freezing):
    """A class whose attributes are set in ``__init__`` and by ``functools.cached_property``, and by nothing else.

    What was checked when an object was made, such as the integers that its privacy rests on, so stays true of it.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if "_is_made" in self.__dict__:
            self._refuse(name)
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        self._refuse(name)

    def _refuse(self, name: str) -> NoReturn:
        kind = type(self).__name__
        raise AttributeError(
            f"{name} of {kind} cannot be changed, since its checks would not hold; make another {kind}"
        )
