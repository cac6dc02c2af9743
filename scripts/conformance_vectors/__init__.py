"""What scripts/make-conformance writes: plans, words, and what must be accepted or refused."""
