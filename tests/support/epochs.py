"""Epochs with simulated reports."""

import numpy as np

from sunzi.client.device.uploads import ID_BYTES


def filled_epoch(collector, name, plan, values, seed, close=True):
    """Open an epoch with this plan, count these values in it, and close it."""
    live = collector.open(name, plan, old_plan="close")
    batch = plan.client(seed=seed).report_indices(np.asarray(values))
    collector.store.commit([collector.deposit(live, seed.to_bytes(ID_BYTES, "big"), batch)])
    if close:
        collector.close(name, live.epoch.number)
    return live.epoch


def shares(*counts):
    """So many users of each value."""
    return np.repeat(np.arange(len(counts)), counts)
