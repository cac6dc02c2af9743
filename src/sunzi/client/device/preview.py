"""What a report says, in words: for a notice before the first report, and for whoever wants to see one."""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

from ..epsilon import privacy_in_words
from ..plan import Plan
from ..reports import Report, encode_report

_MOST_VALUES = 10_000
_SHOWN_VALUES = 5


class Preview(NamedTuple):
    """A report that was not sent.

    >>> from sunzi.client import Device, load_plan
    >>> device = Device("device.db", lifetime_epsilon=4, max_epsilon=1)
    >>> url = "https://collector.example/v1/collections/default/epochs/1"
    >>> print(device.preview(load_plan("plan.json"), "browser", "Chrome", url))
    to https://collector.example/v1/collections/default/epochs/1: 0...
    """

    address: str
    body: bytes
    """The bytes of the report."""
    words: str
    """What they say."""

    def __str__(self) -> str:
        """The address, the bytes and the words."""
        return f"to {self.address}: {self.body.hex()}\n{self.words}"


def describe(plan: Plan, report: Report, address: str) -> Preview:
    """The bytes of a report, and what they say."""
    body = encode_report(plan.protocol.report_layout, report)
    size = "1 byte" if len(body) == 1 else f"{len(body):,} bytes"
    promise = f"With epsilon = {plan.epsilon}, {privacy_in_words(plan.epsilon)}."
    return Preview(address, body, f"{size}. {_named(plan, report)}{promise}")


def _named(plan: Plan, report: Report) -> str:
    """The values that a report names, where they can be listed."""
    domain, protocol = plan.domain, plan.protocol
    if domain.is_open or domain.size > _MOST_VALUES or protocol.is_supported(report, 0) is None:
        return "They name an answer drawn at random, which the user's value makes more likely. "
    named = [index for index in range(domain.size) if protocol.is_supported(report, index)]
    first = ", ".join(domain.shown(index) for index in islice(named, _SHOWN_VALUES))
    rest = ", …" if len(named) > _SHOWN_VALUES else ""
    values = f"{len(named):,} of {domain.size:,} values{': ' if named else ''}{first}{rest}"
    return (
        f"They name {values}. These were drawn at random, and the user's value is among them more often than others. "
    )


def notice(plan: Plan, attribute: str) -> str:
    """A notice for the first run: what is asked, what is sent, and how to say no.

    Parameters
    ----------
    plan: the plan of the collection.
    attribute: what is measured.

    >>> from sunzi.client import load_plan
    >>> notice(load_plan("plan.json"), "the browser")
    'This program would like to report the browser, to count how often each value occurs. ...'
    """
    return (
        f"This program would like to report {attribute}, to count how often each value occurs. Your own value never "
        f"leaves this device: it is replaced by a random report here, and {privacy_in_words(plan.epsilon)} (epsilon = "
        f"{plan.epsilon}). Nothing is sent unless you agree, and you can turn it off at any time. DO_NOT_TRACK=1 in "
        "the environment turns it off, too."
    )
