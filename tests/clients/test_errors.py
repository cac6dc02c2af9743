"""The JavaScript client's errors have the same names and base classes as Python's."""

import inspect

import javascript
import pytest

from sunzi import errors

# JavaScript reads tallies but estimates nothing, makes no plans, and knows no protocols of other packages.
PYTHON_ONLY = {"EstimateError", "PlanWarning", "UnknownProtocolError"}


@pytest.mark.usefixtures("client_directory")
def test_errors_have_the_same_names_and_base_classes_as_in_python():
    kinds = {name: kind for name, kind in inspect.getmembers(errors, inspect.isclass) if name not in PYTHON_ONLY}
    lineage = {name: [each.__name__ for each in kind.__mro__ if each in kinds.values()] for name, kind in kinds.items()}
    assert javascript.run_node("errors.mjs", None) == lineage
