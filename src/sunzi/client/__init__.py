"""The client: everything that stands between a value and the network, with the standard library alone.

>>> from sunzi.client import load_plan
>>> plan = load_plan("plan.json")
>>> report = plan.client(max_epsilon=1).report("Firefox")

Names are imported on first use, and of a plan's kinds of protocols, designs and values only those that it names.
"""

from ._lazy import attach

__getattr__, __dir__ = attach(__name__, __file__)
