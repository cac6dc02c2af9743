"""The core without its extras: a process in which numba, matplotlib, pyarrow, pyspark and so on cannot be imported."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import sunzi

pytestmark = pytest.mark.slow

EXTRAS = (
    "numba",
    "matplotlib",
    "pandas",
    "polars",
    "pyarrow",
    "fastapi",
    "uvicorn",
    "prometheus_client",
    "psycopg",
    "pyspark",
)
SOURCE = Path(sunzi.__file__).parents[1]

FORBID = f"""
import sys
from importlib.abc import MetaPathFinder

class Forbidden(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {EXTRAS!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Forbidden())
"""


def run(code, forbid=True):
    """The output of a fresh process, with warnings as errors, as in this one."""
    program = (FORBID if forbid else "") + textwrap.dedent(code)
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "SUNZI_NO_NUMBA": ""}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("name", EXTRAS)
def test_the_ban_works(name):
    """Otherwise the other tests would prove nothing."""
    code = f"""
        try:
            import {name}.submodule
        except ModuleNotFoundError as error:
            print(error.name)
    """
    assert run(code) == name


def test_importing_sunzi_imports_no_numpy():
    assert run("import sunzi; print([name for name in ('numpy', 'scipy') if name in sys.modules])") == "[]"


CORE = """
    import hashlib, io, tempfile
    from pathlib import Path
    import sunzi

    digest = hashlib.sha256()
    with tempfile.TemporaryDirectory() as directory:
        for name in sunzi.catalogue():
            plan = sunzi.make_plan(name, [f"label {index}" for index in range(40)], epsilon=2)
            plan.save(Path(directory, "plan.json"))
            plan = sunzi.load_plan(Path(directory, "plan.json"))
            client = plan.client(seed=7)
            values = [f"label {index % 4}" for index in range(3000)]
            batch, each = client.report_batch(values), client.reports(values[:50])
            tally = plan.tally(io.BytesIO(batch)) + plan.tally([*each, client.report("label 3")])
            tally.save(Path(directory, "tally"))
            tally = sunzi.load_tally(Path(directory, "tally"))
            assert tally.reports == 3051
            assert plan.client().is_private and plan.client().report("label 1")
            estimate = plan.estimate(tally)
            low, high = estimate.interval()
            assert (low <= high).all()
            assert {row.label for row in estimate.top(4)} == {f"label {index}" for index in range(4)}
            for method in ("simplex", "clip", "significant", "constrained"):
                estimate.postprocess(method)
            simulated = plan.simulate(values, seed=3)
            digest.update(batch + b"".join(each) + tally.to_bytes() + simulated.to_bytes())
    print(digest.hexdigest())
"""


def test_the_core_path_runs_and_imports_no_extra():
    output = run(CORE + f"    print([name for name in {EXTRAS!r} if name in sys.modules])\n")
    assert output.splitlines()[1] == "[]"


def test_extras_change_no_byte():
    """Compiled loops make tallies faster but never change them: reports and tallies are the same without them."""
    loading = "import numba\nfrom sunzi.numerics import kernels\nassert kernels.load()\n"
    with_extras = run(loading + textwrap.dedent(CORE), forbid=False)
    assert with_extras == run(CORE)


FEATURES = {
    "estimate.to_frame()": "frames",
    "estimate.to_frame('pandas')": "frames",
    "estimate.to_frame('polars')": "frames",
    "estimate.postprocess('simplex').to_frame()": "frames",
    "estimate.plot()": "plot",
    "estimate.plot('picture.png')": "plot",
    "sunzi.tables.tally('reports.parquet', plan)": "frames",
    "sunzi.tables.sift('reports.parquet', plan, ['day'])": "frames",
    "sunzi.tables.privatize(None, plan, 'browser', 'reports')": "spark",
}


def test_a_feature_without_its_extra_names_the_extra():
    code = f"""
        import sunzi, sunzi.tables
        plan = sunzi.make_plan("grr", 5, 1)
        estimate = plan.estimate(plan.tally(plan.client(seed=1).report_batch([0, 1, 2, 3])))
        for call in {list(FEATURES)!r}:
            try:
                eval(call)
            except sunzi.MissingExtraError as error:
                assert isinstance(error, ImportError) and isinstance(error, sunzi.SunziError)
                print(error.extra, error, sep=": ")
    """
    lines = run(code).splitlines()
    assert len(lines) == len(FEATURES)
    for line, extra in zip(lines, FEATURES.values(), strict=True):
        assert line.startswith(f"{extra}: ")
        assert line.endswith(f"pip install 'sunzi[{extra}]'")


def test_with_the_extras_the_same_calls_work(tmp_path):
    code = f"""
        import matplotlib
        matplotlib.use("Agg")
        import sunzi
        plan = sunzi.make_plan("grr", 5, 1)
        estimate = plan.estimate(plan.tally(plan.client(seed=1).report_batch([0, 1, 2, 3])))
        print(type(estimate.to_frame()).__module__, type(estimate.to_frame("polars")).__module__)
        estimate.plot({str(tmp_path / "picture.png")!r})
    """
    printed = run(code, forbid=False)
    assert printed.split()[0].startswith("pandas")
    assert printed.split()[1].startswith("polars")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
