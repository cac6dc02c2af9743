"""The client programs of the live page: run unchanged, in both languages, each sends one report."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from datetime import date
from pathlib import Path

import javascript
import pages
import pytest
from browser import FRUIT, HOSTILE, live_service, program_in
from playwright.sync_api import expect

import sunzi
from sunzi.plan import make_plan

pytestmark = pytest.mark.slow

UNSEEN = [
    "\u2028\u2029\u00a0",
    "\U000e0001\ue000\U0010ffff",
    "back\\slash \\u0041",
    "\x00\x7f\r",
    "<!-- </SCRIPT",
    "< 18",
]


@pytest.fixture(scope="module")
def client_directory():
    return javascript.built()


def run_snippet(program, directory):
    installed = directory / "installed"
    installed.mkdir(exist_ok=True)
    if not (installed / "sunzi_client").exists():
        (installed / "sunzi_client").symlink_to(Path(sunzi.__file__).parent / "client")
    environment = os.environ | {"PYTHONPATH": str(installed)}
    command = [sys.executable, "-c", program]
    run = subprocess.run(command, env=environment, cwd=directory, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return int(run.stdout)


def test_the_snippet_turns_waiting_into_a_tick(visit, service, tmp_path):
    service.open("waiting", make_plan("pgr", ["yes", "no", 'don\'t "know"'], 1))
    page = visit("?collection=waiting")
    expect(page.locator("#tick-text")).to_have_text("Waiting for the first report")
    expect(page.locator("#empty-title")).to_have_text("Waiting for the first report")
    expect(page.locator("#rows")).to_be_hidden()
    assert page.locator("#client").get_attribute("open") is not None
    program = page.locator("#code").text_content()
    assert run_snippet(program, tmp_path) == 1
    expect(page.locator("#tick-text")).to_have_text("1 report received")
    expect(page.locator("#tick")).to_have_attribute("data-state", "received")
    expect(page.locator("#announcer")).to_have_text("The first report has arrived.")
    expect(page.locator("#reports")).to_have_text("1")
    expect(page.locator("#body tr")).to_have_count(3)
    # Another run of the same device is not another vote; another device is.
    assert run_snippet(program, tmp_path) == 0
    (tmp_path / "device.db").rename(tmp_path / "other.db")
    assert run_snippet(program, tmp_path) == 1
    expect(page.locator("#reports")).to_have_text("2")
    assert page.locator("#client").get_attribute("open") is not None, "the snippet must stay open"


def test_the_snippet_follows_the_domain(visit, service, tmp_path):
    service.open("numbers", make_plan("grr", 5, "1/2"))
    program = visit("?collection=numbers").locator("#code").text_content()
    assert 'device.queue(plan, "numbers", 0, epoch.url)' in program
    assert run_snippet(program, tmp_path) == 1
    (tmp_path / "labels.txt").write_text("a\nb\nc\n")
    service.open("separate", make_plan("grr", sunzi.Domain.from_file(tmp_path / "labels.txt"), 1))
    program = visit("?collection=separate").locator("#code").text_content()
    assert 'with_labels("labels.txt")' in program
    (tmp_path / "device.db").unlink()  # the new plan has a larger epsilon
    assert run_snippet(program.replace("ONE OF YOUR LABELS", "b"), tmp_path) == 1


def test_two_languages(visit, service):
    page = visit()
    assert page.locator("#languages label").all_text_contents() == ["Python", "JavaScript"]
    python = page.locator("#code").text_content()
    assert program_in(page, "Python") == python
    assert 'Device("device.db", lifetime_epsilon="4", max_epsilon="1")' in python
    page.get_by_role("radio", name="Python").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("radio", name="JavaScript")).to_be_checked()
    program = page.locator("#code").text_content()
    assert f'"{service.url}/v1/collections/fruit"' in program
    assert 'Device.open({ lifetimeEpsilon: "4", maxEpsilon: "1" })' in program
    assert 'device.queue(epoch.plan, "fruit", "apple", epoch.url)' in program
    notes = page.locator("[data-language]")
    assert {note.get_attribute("data-language") for note in notes.filter(visible=True).all()} == {"JavaScript"}
    assert program_in(page, "Python") == python
    assert {note.get_attribute("data-language") for note in notes.filter(visible=True).all()} == {"Python"}


@pytest.mark.parametrize(
    ("protocol", "domain", "epsilon"),
    [
        ("pgr", ['don\'t "know" \\', "yes", "no"], 1),
        ("ss", FRUIT, 1),
        ("mss", FRUIT, "1/3"),
        ("oue", 5, "1/2"),
        ("prefixes", sunzi.OpenDomain("letters", longest=3), 2),
    ],
)
def test_the_javascript_snippet_in_node(visit, service, client_directory, tmp_path, protocol, domain, epsilon):
    service.open(f"node-{protocol}", make_plan(protocol, domain, epsilon))
    page = visit(f"?collection=node-{protocol}")
    expect(page.locator("#reports")).to_have_text("0")
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "sunzi").symlink_to(client_directory)
    program = 'import { FileStore } from "sunzi/node";\n' + program_in(page, "JavaScript")
    assert program.count("Device.open({ ") == 1
    program = program.replace("Device.open({ ", 'Device.open({ store: new FileStore("device"), ')
    (tmp_path / "program.mjs").write_text(program)
    command = [shutil.which("node"), "program.mjs"]
    for acknowledged in (1, 0):  # the second run is not another vote
        run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
        assert (run.stdout, run.stderr) == (f"{acknowledged}\n", "")
    expect(page.locator("#tick-text")).to_have_text("1 report received")
    expect(page.locator("#reports")).to_have_text("1")


def test_the_snippets_report_records(visit, service, client_directory, tmp_path):
    attributes = {
        "version": ["1", "2"],
        "since": sunzi.OrderedDomain(date(2026, 1, 1), date(2026, 1, 9), 8),
        "load time": sunzi.OrderedDomain(-0.5, 10, 4, unit="s"),
    }
    service.open("records", sunzi.make_tables(attributes, [("version", "since"), ("load time",)], 1))
    page = visit("?collection=records")
    record = '{"version": "1", "since": "2026-01-01", "load time": -0.5}'
    program = program_in(page, "Python")
    assert f'device.queue(plan, "records", {record}, epoch.url)' in program
    assert run_snippet(program, tmp_path) == 1
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "sunzi").symlink_to(client_directory)
    program = 'import { FileStore } from "sunzi/node";\n' + program_in(page, "JavaScript")
    assert f'device.queue(epoch.plan, "records", {record}, epoch.url)' in program
    program = program.replace("Device.open({ ", 'Device.open({ store: new FileStore("device"), ')
    (tmp_path / "program.mjs").write_text(program)
    command = [shutil.which("node"), "program.mjs"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert (run.stdout, run.stderr) == ("1\n", "")


def test_the_javascript_snippet_in_a_page_of_another_site(visit, client_directory, tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("a\nb\nc\n")
    with (
        pages.served(client_directory, tmp_path / "site") as site,
        live_service(tmp_path, allow_origins=(site,)) as collector,
    ):
        (tmp_path / "site" / "labels.txt").write_bytes(words.read_bytes())
        collector.open("hostile", make_plan("grr", HOSTILE, 2))
        collector.open("separate", make_plan("mss", sunzi.Domain.from_file(words), 1))
        for name, label in (("hostile", None), ("separate", "b")):
            page = visit(f"?collection={name}", url=collector.url)
            program = program_in(page, "JavaScript")
            assert ("ONE OF YOUR LABELS" in program) == (label is not None)
            write_page(tmp_path / "site" / f"{name}.html", program.replace("ONE OF YOUR LABELS", str(label)))
            other = page.context.new_page()
            with other.expect_console_message(lambda message: message.type == "log") as message:
                other.goto(f"{site}/{name}.html")
            assert message.value.text == "1"
            expect(page.locator("#reports")).to_have_text("1")
            page.close()


def write_page(path, program):
    """A page with the unchanged program in its markup."""
    modules = {"sunzi": "index", "sunzi/device": "device", "sunzi/subsets": "subsets"}
    addresses = json.dumps({"imports": {name: f"./dist/{module}.js" for name, module in modules.items()}})
    scripts = f'<script type="importmap">{addresses}</script><script type="module">{program}</script>'
    path.write_text(f'<!doctype html><meta charset="utf-8"><title>A client</title>{scripts}')


def test_labels_are_literals_of_both_languages(visit, service):
    page = visit()
    written = page.evaluate(
        """async (labels) => {
          const { pythonLiteral, javascriptLiteral } = await import("./snippets.js");
          return labels.map((label) => [pythonLiteral(label), javascriptLiteral(label)]);
        }""",
        HOSTILE + UNSEEN,
    )
    for label, (python, script) in zip(HOSTILE + UNSEEN, written, strict=True):
        assert python.isprintable()
        assert script.isprintable()
        assert ast.literal_eval(python) == label
        assert page.evaluate(script) == label
        assert re.search("<[!/a-z]", script, re.IGNORECASE) is None
    assert written[-1] == ['"< 18"', '"< 18"']


def test_the_snippet_is_copied(visit, service):
    page = visit(permissions=["clipboard-read", "clipboard-write"])
    page.locator("#client summary").click()
    page.locator("#copy").click()
    expect(page.locator("#copy")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == page.locator("#code").text_content()
