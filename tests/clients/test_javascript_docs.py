"""Every JavaScript example in the documentation runs in Node against a collector; examples for browsers run with a
store in memory.
"""

import re
import shutil
import subprocess

import pytest
from javascript import ROOT
from running import running

import sunzi

PAGES = [ROOT / "docs" / "javascript.md", ROOT / "clients" / "javascript" / "README.md"]
EXAMPLES = [
    (page.name, number, place.strip(), code)
    for page in PAGES
    for number, (place, code) in enumerate(
        re.findall(r"^```js([^\n]*)\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    )
]
NAMES = [f"{page}-{number}" for page, number, _, _ in EXAMPLES]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    plan = sunzi.make_plan("ss-compact", ["Firefox", "Chrome", "Safari", "other"], 1)
    with running(tmp_path_factory.mktemp("store") / "store.db", {"default": plan}) as service:
        yield service.address


def test_there_are_examples():
    assert len(EXAMPLES) >= 5
    assert {place for _, _, place, _ in EXAMPLES} == {"", "browser"}


@pytest.mark.parametrize(("place", "code"), [example[2:] for example in EXAMPLES], ids=NAMES)
def test_examples(place, code, address, client_directory, tmp_path):
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "sunzi").symlink_to(client_directory)
    if place == "browser":
        code = code.replace("Device.open({", "Device.open({ store: new MemoryStore(),")
        code = code.replace("{ Device }", "{ Device, MemoryStore }")
        code += "\nprocess.exit();"
    (tmp_path / "example.mjs").write_text(code.replace("https://collector.example", address))
    program = [shutil.which("node"), "example.mjs"]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
