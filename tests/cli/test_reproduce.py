"""``sunzi reproduce``: its list, its files, and its refusals."""

import subprocess
import sys

import pytest

from sunzi.cli.main import main
from sunzi.cli.reproduce import _load

pytestmark = pytest.mark.slow


def test_list_names_every_experiment(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["reproduce", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "name,shows,in_the_paper"
    assert [line.split(",")[0] for line in lines[1:]] == list(_load("catalogue").NAMES)
    assert main(["reproduce", "--list", "--format", "table"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if line[0] != " "] == list(_load("catalogue").NAMES)
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "give the names of experiments to run, or all"),
        (("mse",), "--quick"),
        (("alchemy", "--quick"), "must be one of mse"),
        (("mse", "--quick", "--jobs", "0"), "--jobs must be at least 1, got 0"),
        (("mse", "--quick", "--seed", "-1"), "--seed must not be negative, got -1"),
    ],
)
def test_refuses_before_any_work(words, message, complaint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", *words]) == 2
    assert message in complaint()
    assert list(tmp_path.iterdir()) == []


def test_quick_and_full_exclude_each_other(capsys):
    with pytest.raises(SystemExit, match=r"^2$"):
        main(["reproduce", "mse", "--quick", "--full"])
    assert "not allowed with" in capsys.readouterr().err


def test_writes_tables_pictures_and_the_report(tmp_path, capsys, monkeypatch):
    runner, catalogue = _load("runner"), _load("catalogue")
    asked = []

    def run(experiments, scale, root, **options):
        asked.append(([experiment.name for experiment in experiments], scale, options["seed"], options["jobs"]))
        original(experiments, "tiny", root, **options)

    original = runner.run
    monkeypatch.setattr(runner, "run", run)
    out = tmp_path / "out"
    assert main(["reproduce", "ridge", "--full", "--output", str(out), "--jobs", "1", "--seed", "3"]) == 0
    assert asked == [(["ridge"], "full", 3, 1)]
    assert catalogue.find("ridge").name == "ridge"
    assert capsys.readouterr().err.splitlines() == [
        f"wrote the results of ridge to {out / 'results' / 'ridge.csv'}",
        f"wrote the report to {out / 'report.html'}",
    ]
    assert {path.name for path in (out / "results").iterdir()} == {
        "ridge.csv",
        "ridge.svg",
        "ridge.narrow.svg",
        "ridge.pdf",
    }
    assert (out / "REPORT.md").is_file()
    assert (out / "work" / ".gitignore").read_text() == "*\n"


def test_the_default_directory_says_how_much_was_run(tmp_path, monkeypatch):
    runner = _load("runner")
    roots = []
    monkeypatch.setattr(runner, "run", lambda experiments, scale, root, **options: roots.append((scale, str(root))))
    assert main(["reproduce", "all", "--quick"]) == 0
    assert roots == [("quick", "sunzi-reproduction-quick")]


def test_says_which_extra_is_missing(tmp_path):
    code = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'matplotlib': raise ModuleNotFoundError('no', name=name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "from sunzi.cli.main import main\n"
        "sys.exit(main(['reproduce', 'mse', '--quick']))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert run.returncode == 2
    assert "pip install 'sunzi[plot]'" in run.stderr


def test_without_the_experiments_it_says_where_they_are(monkeypatch, complaint):
    from sunzi.cli import reproduce

    monkeypatch.setattr(reproduce, "__file__", "/nowhere/a/b/c/reproduce.py")
    assert main(["reproduce", "--list"]) == 2
    assert "reproduction/" in complaint()
