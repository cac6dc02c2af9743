"""The picture of a guarantee: never without its conditions."""

import pytest

import sunzi
from sunzi.planning import batch_curves


def drawn(plan, **options):
    pytest.importorskip("matplotlib")
    from sunzi.planning.central_plots import draw_batch

    curves = batch_curves(plan, plan.batch_guarantee(100_000, 1e-8, **options))
    return curves, draw_batch(curves)


def test_two_panels_with_the_bound_the_attack_and_the_own_point(monkeypatch):
    monkeypatch.setattr("sunzi.planning.central_curves._STEPS", 1)
    monkeypatch.setattr("sunzi.planning.central_curves._EPSILONS", (1, 3))
    curves, figure = drawn(sunzi.make_plan("grr", 1024, 2), honest=0.9, epochs=7)
    sizes, epsilons = figure.axes
    assert (sizes.get_xlabel(), epsilons.get_xlabel()) == ("reports in a batch", "epsilon of one report")
    for panel, guarantees in ((sizes, curves.by_size), (epsilons, curves.by_epsilon)):
        lines = {line.get_label(): list(line.get_ydata()) for line in panel.get_lines()}
        assert lines["proven: at most this"] == [guarantee.epsilon for guarantee in guarantees]
        assert lines["an attack reaches this"] == [guarantee.attack_epsilon for guarantee in guarantees]
        assert lines["one report, seen alone"] == [guarantee.local_epsilon for guarantee in guarantees]
        assert lines[f"this plan: {curves.own.epsilon:.3g}"] == [curves.own.epsilon]
        assert len(panel.collections) == 1
    assert figure.get_suptitle().replace("\n", " ") == (
        "grr, 1,024 values, epsilon 2 per report, 100,000 reports, 90 % honest, 7 epochs with fresh noise, "
        "delta 1e-08, one value replaced. "
        "The reader sees all reports of the batch in random order, without ids, times or addresses."
    )


def test_one_panel_for_numbers_and_for_a_cohort(monkeypatch):
    monkeypatch.setattr("sunzi.planning.central_curves._STEPS", 1)
    _, figure = drawn(sunzi.make_number(0, 5000, 2), epochs=30, cohort=10_000)
    (panel,) = figure.axes
    assert panel.get_xlabel() == "people in exactly the same batches"
    title = figure.get_suptitle().replace("\n", " ")
    assert "10,000 people in the same batches, 100 % honest, 30 epochs with repeated memoised reports" in title
