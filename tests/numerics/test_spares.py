"""Things lent to one caller at a time."""

import copy
import pickle

import pytest

from sunzi.numerics.spares import Spares


def test_what_comes_back_is_lent_again() -> None:
    spares: Spares[list[int]] = Spares(list)
    with spares.lend() as first:
        first.append(1)
    with spares.lend() as again:
        assert again is first


def test_two_callers_never_share() -> None:
    spares: Spares[list[int]] = Spares(list)
    with spares.lend() as first, spares.lend() as second:
        assert first is not second
    with spares.lend() as third, spares.lend() as fourth:
        assert {id(third), id(fourth)} == {id(first), id(second)}


def test_what_a_failing_caller_had_is_not_lent_again() -> None:
    spares: Spares[list[int]] = Spares(list)
    with pytest.raises(ZeroDivisionError), spares.lend() as broken:
        broken.append(1 // 0)
    with spares.lend() as other:
        assert other is not broken


def test_a_copy_starts_with_none() -> None:
    spares: Spares[list[int]] = Spares(list)
    with spares.lend() as lent:
        lent.append(1)
    for copied in (copy.deepcopy(spares), pickle.loads(pickle.dumps(spares))):
        with copied.lend() as fresh:
            assert fresh == []
