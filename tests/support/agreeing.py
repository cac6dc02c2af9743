"""Devices whose users have agreed, and what a device has on disk."""

import sqlite3
from contextlib import closing

from sunzi.client import Device

THERE = "https://collector.example/v1/collections/browsers/epochs/1"


def epoch_of(number):
    """The address of an epoch of one collection."""
    return f"{THERE.removesuffix('1')}{number}"


def agreed(path, lifetime_epsilon, *, max_epsilon=1, **options):
    """A device that is on."""
    device = Device(path, lifetime_epsilon, max_epsilon=max_epsilon, **options)
    assert device.enable()
    return device


def bodies(device):
    """The bytes of the reports that wait."""
    return [report.body for report in device.waiting()]


def rows(path, query):
    """The rows that a query finds in a device's file."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def key_of(path):
    """The device's key."""
    ((key,),) = rows(path, "SELECT key FROM device")
    return key


def files(directory):
    """The content and the mode of every file of a directory."""
    return {path.name: (path.read_bytes(), path.stat().st_mode) for path in sorted(directory.iterdir())}
