"""Things with room of their own, that only one caller at a time may use."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

Thing = TypeVar("Thing")


class Spares(Generic[Thing]):
    """Things made when no spare one is left, and kept for the next caller. Memory fresh from the system can take as
    long as what is done in it. Guarantee: threads may share an object; a copy of it starts with none.
    """

    def __init__(self, make: Callable[[], Thing]) -> None:
        self._make = make
        self._spare: list[Thing] = []

    def __reduce__(self) -> tuple[type["Spares[Thing]"], tuple[Callable[[], Thing]]]:
        return type(self), (self._make,)

    @contextmanager
    def lend(self) -> Iterator[Thing]:
        """One of them, the caller's own until it is done."""
        try:
            thing = self._spare.pop()
        except IndexError:
            thing = self._make()
        yield thing
        self._spare.append(thing)
