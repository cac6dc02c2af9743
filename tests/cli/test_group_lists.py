"""Groups that ``sunzi plan`` declares."""

import pytest

import sunzi
from sunzi.cli.main import main


def test_groups_are_declared(collection, capsys):
    (collection.directory / "countries.txt").write_text("DE\nFR\n\n")
    words = ("plan", "--size", "10", "--epsilon", "1", "--users", "1000", "--group", "release=124,125")
    assert collection.run(*words, "-o", "new.json") == 0
    assert dict(sunzi.load_plan(collection.path("new.json")).groups) == {"release": ("124", "125")}
    countries = f"country=@{collection.path('countries.txt')}"
    assert main([*words, "--group", countries, "-o", collection.path("both.json")]) == 0
    assert dict(sunzi.load_plan(collection.path("both.json")).groups)["country"] == ("DE", "FR")
    assert collection.run("inspect", "both.json", "--format", "table") == 0
    assert "country: DE, FR; release: 124, 125 (public)" in capsys.readouterr().out


def test_plans_of_numbers_declare_groups(collection):
    words = ("plan", "--number", "0:100", "--epsilon", "1", "--group", "country=DE,FR", "-o", "number.json")
    assert collection.run(*words) == 0
    assert dict(sunzi.load_plan(collection.path("number.json")).groups) == {"country": ("DE", "FR")}


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (["country"], "--group is NAME=VALUE,VALUE,… or NAME=@FILE, got 'country'"),
        (["country=DE", "country=FR"], "--group country is given twice"),
        (["country=DE,DE"], "lists 'DE' twice"),
        (["country="], "a value of group country"),
        (["Country=DE"], "a group's attribute"),
    ],
)
def test_bad_lists_are_refused(collection, complaint, groups, message):
    words = [word for group in groups for word in ("--group", group)]
    assert collection.run("plan", "--size", "10", "--epsilon", "1", "--users", "1000", *words) == 2
    assert message in complaint()
