"""How a guarantee changes with the size of the batch and with ε."""

import pytest

import sunzi
from sunzi.planning import batch_curves


@pytest.mark.slow
def test_curves_fall_with_the_batch_and_rise_with_epsilon():
    plan = sunzi.make_plan("grr", 1024, 2)
    done = []
    curves = batch_curves(plan, plan.batch_guarantee(100_000, 1e-8, honest=0.9), done.append)
    sizes = [guarantee.minimum_reports for guarantee in curves.by_size]
    assert (sizes[0], sizes[-1]) == (100, 10**8)
    assert 100_000 in sizes
    falling = [guarantee.epsilon for guarantee in curves.by_size]
    assert falling == sorted(falling, reverse=True)
    assert [float(guarantee.local_epsilon) for guarantee in curves.by_epsilon] == [0.5, *range(1, 9)]
    rising = [guarantee.epsilon for guarantee in curves.by_epsilon]
    assert rising == sorted(rising)
    assert curves.own in curves.by_size
    assert curves.own in curves.by_epsilon
    assert {(each.delta, each.honest_share) for each in (*curves.by_size, *curves.by_epsilon)} == {(1e-8, 0.9)}
    assert done == sorted(done)
    assert done[-1] == 1


@pytest.mark.filterwarnings("error")
def test_the_size_of_a_cohort_varies_within_large_batches():
    plan = sunzi.make_plan("grr", 1024, "1.7")
    curves = batch_curves(plan, plan.batch_guarantee(10_000, 1e-5, epochs=30, cohort=500))
    cohorts = [guarantee.cohort for guarantee in curves.by_size]
    assert (cohorts[0], cohorts[-1]) == (16, 500_000)
    assert {guarantee.epochs for guarantee in curves.by_size} == {30}
    assert all(guarantee.minimum_reports >= guarantee.cohort for guarantee in curves.by_size)
    assert plan.epsilon in [guarantee.local_epsilon for guarantee in curves.by_epsilon]


def test_only_sizes_vary_for_plans_of_numbers_and_records(monkeypatch):
    monkeypatch.setattr("sunzi.planning.central_curves._STEPS", 1)
    plan = sunzi.make_number(0, 5000, 2)
    curves = batch_curves(plan, plan.batch_guarantee(100_000, 1e-8))
    assert curves.by_epsilon == ()
    assert curves.by_size[-1].epsilon < curves.own.epsilon
