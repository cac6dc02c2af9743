"""The first ten minutes print what the page shows, and the gallery's commands make its pictures."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "make-gallery"))
MOST_BYTES = 2_000_000


@pytest.mark.slow
def test_the_first_minutes_print_what_the_page_shows():
    checked = subprocess.run(
        [sys.executable, ROOT / "scripts" / "make-gallery", "--check"], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def names(pattern: str) -> set[str]:
    return set(re.findall(pattern, SCRIPT["GALLERY"].read_text(encoding="utf-8"))) - {"live-page-dark"}


def test_every_picture_of_the_gallery_has_its_command():
    assert names(r"-o ([\w-]+)\.(?:png|html)\n") == names(r"pictures/gallery/([\w-]+)\.png")


@pytest.mark.long
def test_the_commands_of_the_gallery_make_its_pictures():
    with SCRIPT["workplace"]() as directory:
        SCRIPT["draw_gallery"](directory)
        made = {path.stem for path in directory.iterdir() if path.suffix in (".png", ".html")}
    assert made == names(r"pictures/gallery/([\w-]+)\.png")


def test_pictures_are_small():
    sizes = {path.name: path.stat().st_size for path in (ROOT / "docs" / "pictures").rglob("*.*")}
    assert sum(sizes.values()) < MOST_BYTES, sizes


def test_commands_end_where_their_output_begins():
    assert SCRIPT["commands"]("$ a \\\n> b\n> c\nout\n> grr\n$ d\n") == ["a \\\nb\nc", "d"]


def test_only_times_are_left_out_of_the_comparison():
    text = "the 12.71 %\nSeconds: plan 0.38, draw\n3.06\nWrote the picture 1.5\n"
    assert SCRIPT["without_times"](text) == "the 12.71 %\nSeconds: plan #, draw #\nWrote the picture 1.5\n"
