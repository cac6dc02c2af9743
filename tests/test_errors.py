"""The exceptions: public, one base, and usable as the built-in ones that callers expect."""

import inspect

import pytest

import sunzi
from sunzi import errors


def test_every_error_class_is_public():
    tree = {
        name for name, value in vars(errors).items() if inspect.isclass(value) and value.__module__ == errors.__name__
    }
    assert tree
    assert tree <= set(sunzi.__all__)


def test_every_error_has_the_common_base():
    classes = [value for value in vars(errors).values() if inspect.isclass(value)]
    assert all(issubclass(value, (errors.SunziError, UserWarning)) for value in classes)


@pytest.mark.parametrize(
    ("error", "base"),
    [
        (errors.ParameterError, ValueError),
        (errors.DomainError, errors.ParameterError),
        (errors.PrivacyError, errors.PlanError),
        (errors.ReportError, ValueError),
        (errors.TallyError, ValueError),
        (errors.BudgetError, RuntimeError),
        (errors.StoreError, RuntimeError),
    ],
)
def test_handlers_of_built_in_errors_catch_them(error, base):
    with pytest.raises(base, match="reason"):
        raise error("reason")


def test_a_missing_extra_says_what_to_install():
    with pytest.raises(ImportError, match=r"plotting needs an extra .*: pip install 'sunzi\[plot\]'") as caught:
        raise errors.MissingExtraError("plotting", "plot")
    assert caught.value.extra == "plot"
