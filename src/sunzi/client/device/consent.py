"""Whether a device may report at all."""

from __future__ import annotations

import os
from collections.abc import Mapping

VARIABLE = "DO_NOT_TRACK"


def do_not_track(environment: Mapping[str, str] | None = None) -> bool:
    """Whether the user's environment forbids reports: ``DO_NOT_TRACK`` with any value but empty, 0 and false.

    Parameters
    ----------
    environment: the variables, by default those of this process.

    >>> do_not_track({"DO_NOT_TRACK": "1"}), do_not_track({"DO_NOT_TRACK": "false"}), do_not_track({})
    (True, False, False)
    """
    found = (os.environ if environment is None else environment).get(VARIABLE, "")
    return found.strip().lower() not in ("", "0", "false")
