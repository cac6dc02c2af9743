"""The paper's figures and tables, run again: one file an experiment.

Collections are made as a user makes them, by ``sunzi.make_plan``, ``Plan.simulate``, ``Plan.estimate``,
``sunzi.planning`` and ``sunzi.analysis``. What the paper speaks of and no user needs is taken from inside: the weighted
Gram matrix and its condition number, the designs behind a report for the paper's own attacker, the dynamic programme of
PGR, prime numbers, seeded random words, and the package's files and processes.
"""
