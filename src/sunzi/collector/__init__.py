"""Collecting reports so that each is counted exactly once: stores, group commit, collections and their epochs."""
