"""The exceptions: public, one base, and usable as the built-in ones that callers expect."""

import inspect

import pytest

import sunzi
from sunzi import errors
from sunzi.client import errors as client_errors

CLASSES = [
    value
    for module in (client_errors, errors)
    for value in vars(module).values()
    if inspect.isclass(value) and value.__module__ == module.__name__
]


def test_every_error_class_is_public():
    assert len(CLASSES) > 10
    assert {each.__name__ for each in CLASSES} <= set(sunzi.__all__)


def test_every_error_has_the_common_base():
    assert all(issubclass(value, (sunzi.SunziError, UserWarning)) for value in CLASSES)


@pytest.mark.parametrize(
    ("error", "base"),
    [
        (sunzi.ParameterError, ValueError),
        (sunzi.DomainError, sunzi.ParameterError),
        (sunzi.PrivacyError, sunzi.PlanError),
        (sunzi.ReportError, ValueError),
        (sunzi.TallyError, ValueError),
        (sunzi.BudgetError, RuntimeError),
        (sunzi.StoreError, RuntimeError),
    ],
)
def test_handlers_of_built_in_errors_catch_them(error, base):
    with pytest.raises(base, match="reason"):
        raise error("reason")


def test_a_missing_extra_says_what_to_install():
    with pytest.raises(ImportError, match=r"plotting needs an extra .*: pip install 'sunzi\[plot\]'") as caught:
        raise errors.MissingExtraError("plotting", "plot")
    assert caught.value.extra == "plot"
