"""The JavaScript client's errors have the same names and base classes as Python's."""

import javascript
import pytest

from sunzi.errors import SunziError

# JavaScript reads tallies but estimates nothing, makes no plans, and knows no protocols of other packages.
PYTHON_ONLY = {"EstimateError", "PlanWarning", "UnknownProtocolError"}


def errors_of(kind):
    """This error and those that derive from it, without those of single modules."""
    found = [kind, *(each for base in kind.__subclasses__() for each in errors_of(base))]
    return [each for each in found if each.__module__.endswith(".errors")]


@pytest.mark.usefixtures("client_directory")
def test_errors_have_the_same_names_and_base_classes_as_in_python():
    kinds = {kind.__name__: kind for kind in errors_of(SunziError) if kind.__name__ not in PYTHON_ONLY}
    lineage = {name: [each.__name__ for each in kind.__mro__ if each in kinds.values()] for name, kind in kinds.items()}
    assert javascript.run_node("errors.mjs", None) == lineage
