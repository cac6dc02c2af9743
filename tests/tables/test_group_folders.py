"""Folders of tallies: what is saved is loaded, names are safe, and a damaged folder is refused."""

from pathlib import Path

import pytest

import sunzi
from sunzi.client.errors import ParameterError, SunziError
from sunzi.tables import group_folders, load_groups, save_groups

PLAN = sunzi.make_plan("grr", ["no", "yes"], 1)
TALLIES = {(name, 1): PLAN.simulate(["yes"] * size, seed=size) for name, size in (("DE", 5), (None, 3), ("", 2))}


@pytest.fixture
def folder(tmp_path):
    save_groups(tmp_path, ["country", "day"], TALLIES)
    return tmp_path


def test_saved_groups_are_loaded(folder):
    by, found = load_groups(folder)
    assert by == ["country", "day"]
    assert found == {("DE", "1"): TALLIES["DE", 1], ("", "1"): TALLIES[None, 1] + TALLIES["", 1]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "has no groups.csv"),
        ("", "is not the list"),
        ("\xff", "is not the list"),
        ("file,reports\n", "must have the columns"),
        ("a,country,reports\n", "must have the columns"),
        ("file,country,reports\nx.tally,DE\n", "damaged row"),
        ("file,country,reports\n../x.tally,DE,5\n", "damaged row"),
        ("file,country,reports\nx.tally,DE,5\n", "No such file"),
        ("file,country,reports\ncountry=DE%2Cday=1.tally,DE,6\n", "No such file"),
    ],
)
def test_a_damaged_folder_is_refused(folder, text, message):
    path = folder / "groups.csv"
    path.unlink() if text is None else path.write_bytes(text.encode("latin-1"))
    with pytest.raises((SunziError, OSError), match=message):
        load_groups(folder)


def test_a_tally_that_was_exchanged_is_refused(folder):
    TALLIES[None, 1].save(next(Path(folder).glob("country=DE*")))
    with pytest.raises(sunzi.TallyError, match=r"has 3 reports, and .*groups\.csv says 5"):
        load_groups(folder)


def test_a_folder_of_other_files_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="not a folder of 'sunzi tally --by'"):
        load_groups(tmp_path)


def test_names_that_differ_only_in_case():
    taken = set()
    for value in ("DE", "De", "de"):
        taken.add(group_folders.name_of_group(["g"], (value,), taken).lower())
    assert len(taken) == 3


def test_no_text_can_pass_for_the_name_of_another():
    """A shortened name ends in a plus sign and a hash, which no value can produce."""
    long = group_folders.name_of_group(["g"], ("x" * 300,))
    imitated = group_folders.name_of_group(["g"], (long.removeprefix("g=").removesuffix(".tally"),))
    assert imitated != long
