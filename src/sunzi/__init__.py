"""Frequency estimation under local differential privacy.

>>> import sunzi
>>> plan = sunzi.make_plan("mss", domain=22000, epsilon=2)
>>> reports = plan.client().report_batch([3, 1, 4, 1, 5])
>>> estimate = plan.estimate(plan.tally(reports))

Public names are imported on first use: ``import sunzi`` alone imports neither numpy nor scipy.
"""

from sunzi.client._lazy import attach

__getattr__, __dir__ = attach(__name__, __file__)
