"""The least error of any protocol: reached by subset selection, and below every other one."""

import math

import pytest

import sunzi
from sunzi.client.errors import ParameterError
from sunzi.planning import evaluate, least_error


@pytest.mark.parametrize(("size", "epsilon"), [(2, 1), (10, 5), (100, 0.5), (1024, 3)])
def test_subset_selection_reaches_it_and_others_do_not_go_below(size, epsilon):
    least = least_error(size, epsilon, 1000)
    assert evaluate(sunzi.make_plan("ss", size, epsilon), 1000).flat_error == pytest.approx(least, rel=1e-9)
    for name in ("grr", "ss-compact", "oue", "rappor"):
        assert evaluate(sunzi.make_plan(name, size, epsilon), 1000).flat_error >= least * (1 - 1e-9)


def test_the_best_block_is_found_without_trying_all():
    for size in (2, 3, 7, 50):
        for epsilon in (0.1, 1, 4):
            odds = math.exp(epsilon)
            best = min((w * odds + size - w) ** 2 / (w * (size - w)) for w in range(1, size))
            floor = ((size - 1) ** 2 * best / (odds - 1) ** 2 - (size - 1)) / (9 * size**2)
            assert least_error(size, epsilon, 9) == pytest.approx(math.sqrt(floor))


def test_wrong_arguments():
    for arguments in ((1, 1, 5), (5, 0, 5), (5, 1, 0)):
        with pytest.raises(ParameterError):
            least_error(*arguments)
