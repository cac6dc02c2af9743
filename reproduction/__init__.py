"""The paper's figures and tables, run again: one file an experiment.

Everything here uses the public names of ``docs/api.md`` and no others, as anybody's own experiment could; a test sees
to that. Collections are made as a user makes them, by ``sunzi.make_plan``, ``Plan.simulate`` and ``Plan.estimate``.
"""
