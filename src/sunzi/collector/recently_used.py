"""A mapping of bounded size that keeps what was used last."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class RecentlyUsed(Generic[_Key, _Value]):
    """Keeps values until their sizes exceed a limit, then drops those that were not used for the longest time.

    The newest value stays, whatever its size. Not safe for threads: the caller holds a lock.

    Parameters
    ----------
    limit: the largest sum of sizes.
    size: the size of a value; by default each counts 1.

    >>> kept = RecentlyUsed(2)
    >>> kept["a"], kept["b"] = 1, 2
    >>> kept.get("a")
    1
    >>> kept["c"] = 3
    >>> list(kept)
    ['a', 'c']
    """

    def __init__(self, limit: int, size: Callable[[_Value], int] = lambda _: 1) -> None:
        self._limit, self._size, self._total = limit, size, 0
        self._values: OrderedDict[_Key, _Value] = OrderedDict()

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[_Key]:
        return iter(self._values)

    def __getitem__(self, key: _Key) -> _Value:
        self._values.move_to_end(key)
        return self._values[key]

    def __setitem__(self, key: _Key, value: _Value) -> None:
        if key in self:
            del self[key]
        self._values[key] = value
        self._total += self._size(value)
        while self._total > self._limit and len(self._values) > 1:
            del self[next(iter(self._values))]

    def __delitem__(self, key: _Key) -> None:
        self._total -= self._size(self._values.pop(key))

    def get(self, key: _Key) -> _Value | None:
        """The value of a key, now the one used last; None if it is not kept."""
        if key not in self:
            return None
        return self[key]

    def values(self) -> list[_Value]:
        """All values, the one used last at the end."""
        return list(self._values.values())
