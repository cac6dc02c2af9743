"""Protocols by name: all are found, and a name cannot be taken twice."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sunzi
from sunzi.client.errors import ParameterError, UnknownProtocolError
from sunzi.numerics.randomness import ReproducibleSource
from sunzi.plan import make_plan
from sunzi.protocols import registry
from sunzi.protocols.block_protocols import GeneralizedRandomizedResponse
from sunzi.protocols.registry import catalogue, find, register


def test_every_name_finds_its_class():
    assert sunzi.catalogue() == catalogue()
    assert len(set(catalogue())) == 8
    for name in catalogue():
        assert find(name).name == name


@pytest.mark.parametrize("name", catalogue())
def test_the_shortcut_of_clients_takes_the_same_words_to_the_same_reports(name):
    """Analyses use ``randomize``, clients ``randomize_reports``."""
    protocol, values = make_plan(name, 60, 1).protocol, np.arange(300) % 60
    expected = protocol.encode(protocol.randomize(values, ReproducibleSource(6)))
    found = protocol.randomize_reports(values, ReproducibleSource(6))
    assert np.array_equal(found.selectors, expected.selectors)
    assert found.in_order() == expected.in_order()


@pytest.mark.parametrize("name", [["grr"], None, 5, "GRR"])
def test_protocols(name):
    with pytest.raises(ParameterError, match="protocol must be one of"):
        make_plan(name, 10, 1)


def test_a_registered_protocol_can_be_planned(monkeypatch):
    monkeypatch.setattr(registry, "_PROTOCOLS", dict(registry._PROTOCOLS))

    @register
    class Mine(GeneralizedRandomizedResponse):
        name = "mine"

    assert catalogue()[-1] == "mine"
    plan = make_plan("mine", 5, 1)
    assert type(plan.protocol) is Mine
    assert plan != make_plan("grr", 5, 1)


def test_a_name_that_is_taken_is_refused():
    class Impostor(GeneralizedRandomizedResponse):
        name = "ss"

    with pytest.raises(ParameterError, match=r"a protocol named 'ss' exists already: .*SubsetSelection"):
        register(Impostor)
    assert find("ss") is not Impostor


def install(folder: Path, name: str, value: str) -> None:
    """What pip leaves behind of a package that offers a protocol."""
    installed = folder / "other_package-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: other-package\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(f"[sunzi.protocols]\n{name} = {value}\n")


COMMANDS = """
import sys
from sunzi.cli.main import main
for line in sys.stdin.read().splitlines():
    code = main(line.split())
    assert code == 0, (line, code)
    print("done", line.split()[0], flush=True)
"""


@pytest.mark.slow
def test_a_protocol_of_another_package_works_in_every_command(tmp_path):
    install(tmp_path, "hadamard", "hadamard_response:HadamardResponse")
    examples = Path(__file__).resolve().parents[2] / "examples"
    (tmp_path / "data.csv").write_text("value\n" + "3\n1\n3\n" * 50)
    lines = """
        plan --size 7 --epsilon 1 --users 150 --protocol hadamard -o plan.json
        privatize plan.json data.csv -o reports.bin
        tally plan.json reports.bin -o tally.bin
        merge tally.bin -o sum.bin
        estimate plan.json sum.bin -o histogram.csv
        inspect plan.json reports.bin tally.bin
        compare --protocols hadamard,ss --size 7 --epsilon 1 -o compared.svg
        attack plan.json --trials 100 --seed 1
        audit plan.json --trials 1000 --seed 1
        poison plan.json --users 200 --runs 2 --attacks input
    """
    paths = [str(tmp_path), str(examples), str(Path(sunzi.__file__).parents[1])]
    run = subprocess.run(
        [sys.executable, "-c", COMMANDS],
        input="\n".join(line.strip() for line in lines.strip().splitlines()),
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.count("done") == 10
    assert json.loads((tmp_path / "plan.json").read_text())["protocol"] == "hadamard"


@pytest.fixture
def offered(tmp_path, monkeypatch):
    """Offer an entry point of the name ``mine``."""
    monkeypatch.setattr(registry, "_PROTOCOLS", dict(registry._PROTOCOLS))
    monkeypatch.syspath_prepend(tmp_path)

    def offer(value: str, module: str = "") -> None:
        install(tmp_path, "mine", value)
        (tmp_path / "mine_of_another_package.py").write_text(module)
        monkeypatch.delitem(sys.modules, "mine_of_another_package", raising=False)

    return offer


def test_it_is_loaded_when_its_name_is_first_needed(offered):
    offered(
        "mine_of_another_package:Mine",
        "from sunzi.protocols.block_protocols import GeneralizedRandomizedResponse\n"
        "class Mine(GeneralizedRandomizedResponse):\n    name = 'mine'\n",
    )
    make_plan("grr", 5, 1)
    assert "mine_of_another_package" not in sys.modules
    plan = make_plan("mine", 5, 1)
    assert type(plan.protocol).__module__ == "mine_of_another_package"
    assert catalogue()[-1] == "mine"
    assert sunzi.Plan.from_json(json.dumps(plan.to_json())) == plan


@pytest.mark.parametrize(
    ("value", "module", "complaint"),
    [
        ("mine_of_another_package:Mine", "1/0", "cannot be loaded: ZeroDivisionError"),
        ("mine_of_another_package:Mine", "", "cannot be loaded: AttributeError"),
        ("mine_of_another_package:Mine", "Mine = 5", "is not a Protocol class of that name"),
        (
            "mine_of_another_package:Mine",
            "from sunzi.protocols.block_protocols import GeneralizedRandomizedResponse as Mine",
            "is not a Protocol class of that name",
        ),
    ],
)
def test_what_another_package_offers_is_checked(offered, value, module, complaint):
    offered(value, module)
    with pytest.raises(ParameterError, match=complaint):
        find("mine")


def test_a_plan_of_an_unknown_protocol_says_so(tmp_path):
    plan = make_plan("grr", 5, 1)
    changed = plan.to_json() | {"protocol": "theirs"}
    (tmp_path / "plan.json").write_text(json.dumps(changed))
    with pytest.raises(UnknownProtocolError, match=r"plan\.json: protocol must be one of .*; got 'theirs'; if another"):
        sunzi.load_plan(tmp_path / "plan.json")
