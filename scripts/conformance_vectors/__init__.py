"""The vectors that scripts/make-conformance writes: plans, words, and messages to accept or refuse."""
