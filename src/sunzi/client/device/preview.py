"""What a report says, in words: for a notice before the first report, and for whoever wants to see one."""

from __future__ import annotations

from fractions import Fraction
from itertools import islice
from typing import NamedTuple

from ..epsilon import privacy_in_words
from ..plan import Plan
from ..reports import Report, decode_report
from .uploads import Upload

_MOST_STEPS = 1 << 21
_SHOWN_VALUES = 5


class Preview(NamedTuple):
    """A report that was not sent.

    >>> from sunzi.client import Device, load_plan
    >>> device = Device("device.db", lifetime_epsilon=4, max_epsilon=1)
    >>> url = "https://collector.example/v1/collections/default/epochs/1"
    >>> print(device.preview(load_plan("plan.json"), "browser", "Chrome", url))
    to https://collector.example/v1/collections/default/epochs/1: ...
    A line with an id, which differs in every epoch, then the report. It names 1 of 3 values: ...
    """

    address: str
    upload: bytes
    """All that would be sent: a line with the report's id, then the report; empty if nothing would be."""
    words: str
    """What it says."""

    def __str__(self) -> str:
        """The address, the upload in hexadecimal and the words."""
        return f"to {self.address}: {self.upload.hex() or 'nothing'}\n{self.words}"


def describe(plan: Plan, address: str, upload: Upload | None, *, is_latest: bool, is_random: bool) -> Preview:
    """What would be sent, and what it says.

    Parameters
    ----------
    plan: the plan of the report.
    address: the epoch that it would be sent to.
    upload: all that would be sent; None if nothing would be.
    is_latest: whether it is the latest report once more, because the budget has ended.
    is_random: whether it was made for a random value, because the user's is outside the domain or cannot be paid.
    """
    if upload is None:
        return Preview(address, b"", "The privacy budget has ended: nothing would be sent.")
    report = decode_report(plan.protocol.report_layout, upload.content)
    own, other = (f"{100 * rate:.3g} %" for rate in plan.protocol.naming_rates(report))
    if is_latest:
        said = "The privacy budget has ended: this is the latest report again, whatever the value is."
    elif is_random:
        said = "It was made for a random value and says nothing about the user's."
    else:
        said = f"Such a report names the user's value in {own} of cases, and another one in {other}."
    line = "A line with an id, which differs in every epoch, then the report."
    promise = f"With epsilon = {plan.epsilon}, {privacy_in_words(plan.epsilon)}."
    return Preview(address, upload.to_bytes(), f"{line} {_named(plan, report)} {said} {promise}")


def _named(plan: Plan, report: Report) -> str:
    """The values that a report names, where they can be listed."""
    domain, protocol = plan.domain, plan.protocol
    is_costly = domain.size * protocol.work > _MOST_STEPS
    if domain.is_open or is_costly or protocol.is_supported(report, 0) is None:
        return "It names an answer drawn at random."
    named = [index for index in range(domain.size) if protocol.is_supported(report, index)]
    first = ", ".join(domain.shown(index) for index in islice(named, _SHOWN_VALUES))
    rest = ", …" if len(named) > _SHOWN_VALUES else ""
    return f"It names {len(named):,} of {domain.size:,} values{': ' if named else ''}{first}{rest}."


def notice(plan: Plan, attribute: str, lifetime_epsilon: Fraction | None = None) -> str:
    """A notice for the first run: what is asked, what is sent, and how to say no.

    Parameters
    ----------
    plan: the plan of the collection.
    attribute: what is measured.
    lifetime_epsilon: the device's budget, if it has one.

    >>> from sunzi.client import load_plan
    >>> notice(load_plan("plan.json"), "the browser")
    'This program would like to report the browser, to count how often each value occurs. ...'
    """
    together = "" if lifetime_epsilon is None else f" All reports of this device together: epsilon {lifetime_epsilon}."
    return (
        f"This program would like to report {attribute}, to count how often each value occurs. Your value is "
        f"randomised on this device before anything is sent, so that {privacy_in_words(plan.epsilon)} (epsilon = "
        f"{plan.epsilon}).{together} Nothing is sent unless you agree, and you can turn it off at any time. "
        "DO_NOT_TRACK=1 in the environment turns it off, too."
    )
