"""The paper's figures and tables, measured again: one file per experiment.

Collections are made as a user makes them, with ``sunzi.make_plan``, ``Plan.simulate`` and ``Plan.estimate``. The
paper's own search for moduli is in ``moduli_search``, and its condition number κ in ``conditioning``.
"""
