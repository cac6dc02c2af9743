"""The pages that scripts/docs builds the site from; scripts/test builds the site itself, which checks all anchors."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SITE = runpy.run_path(str(ROOT / "scripts" / "site_pages.py"))


def test_every_page_is_in_the_navigation():
    listed = re.findall(r"(?:-|:) (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert sorted(listed) == sorted(SITE["pages"]().values())


def test_links_of_the_pages_lead_to_files_of_the_site(tmp_path):
    SITE["write"](tmp_path)
    for page in SITE["pages"]().values():
        prose = "".join(part for code, part in SITE["parts"]((tmp_path / page).read_text(encoding="utf-8")) if not code)
        for target in re.findall(r"\]\(([^()\s#:]+)(?:#[^()\s]*)?\)", re.sub(r"`[^`]*`", "", prose)):
            assert (tmp_path / page).parent.joinpath(target).is_file(), f"{page} links to {target}"


def test_links_to_other_files_lead_to_their_copies():
    linked = set()
    text = "[a](../tests/test_site.py) `[b](c.md)` [d](guide.md#plan) [e](https://example.org)"
    moved = "[a](source/tests/test_site.py.md) `[b](c.md)` [d](guide.md#plan) [e](https://example.org)"
    assert SITE["with_links"]("docs/cli.md", text, linked) == moved
    assert linked == {"tests/test_site.py", "docs/guide.md"}


def test_addresses_of_the_public_repository_lead_to_pages_of_the_site():
    linked = set()
    text = (
        "![a](https://raw.githubusercontent.com/sunzi-ldp/sunzi/main/docs/pictures/batch.png) [b]\n"
        "[b]: https://github.com/sunzi-ldp/sunzi/blob/main/docs/guide.md"
    )
    assert SITE["with_links"]("README.md", text, linked) == "![a](pictures/batch.png) [b]\n[b]: guide.md"
    assert linked == {"docs/pictures/batch.png", "docs/guide.md"}


@pytest.mark.parametrize("name", ["README.md", "clients/javascript/README.md"])
def test_pages_of_package_indexes_have_absolute_links_only(name):
    readme = (ROOT / name).read_text(encoding="utf-8")
    targets = re.findall(r"(?:\]\(|^\[[^]]+\]: )([^()\s]+)", readme, flags=re.MULTILINE)
    assert len(targets) > 4
    assert [target for target in targets if not target.startswith("https://")] == []
    SITE["with_links"](name, readme, set())  # raises a LinkError if one leads to no file


@pytest.mark.parametrize(
    "target", ["missing.md", "../tests", "../../elsewhere.md", "https://github.com/sunzi-ldp/sunzi/blob/main/none.md"]
)
def test_a_link_that_leads_to_no_file_is_refused(target):
    with pytest.raises(SITE["LinkError"], match="not a file of the repository"):
        SITE["with_links"]("docs/cli.md", f"[a]({target})", set())


def test_lists_are_those_of_commonmark():
    text = "Some\n2. are wrapped:\n- one\n  - two\n\n  more\n- three"
    wide = "Some\n2. are wrapped:\n\n- one\n    - two\n\n    more\n\n- three"
    assert SITE["with_wide_lists"](text) == wide


def test_pictures_lead_to_themselves():
    text = "![bars](a.png) and\n```text\n![code](b.png)\n```\n"
    assert SITE["with_linked_pictures"](text) == text.replace("![bars](a.png)", "[![bars](a.png)](a.png)")


def test_code_in_tables_shows_no_backslash_before_a_bar():
    text = "| a \\| b | `int \\| None` |\n`c \\| d`\n```text\n| `e \\| f` |\n```\n"
    assert SITE["with_bare_bars"](text) == text.replace("int \\| None", "int | None")
