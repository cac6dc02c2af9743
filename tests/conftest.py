"""Settings for all tests. With SUNZI_REQUIRE_ALL=1 a skipped test fails the run; all skips are listed at its end."""

import gc
import os
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

# Helpers that several directories share, and the benchmarks, which start the same servers.
sys.path[:0] = [str(Path(__file__).resolve().parent / "support"), str(Path(__file__).resolve().parents[1])]

# Never open a window, and make pictures the same on every machine.
os.environ.setdefault("MPLBACKEND", "Agg")
# Whoever runs the tests may have set it; tests of consent set it themselves.
os.environ.pop("DO_NOT_TRACK", None)

_REQUIRE_ALL = os.environ.get("SUNZI_REQUIRE_ALL", "") not in {"", "0"}

# Test machines are busy, so examples have no deadline; with SUNZI_REQUIRE_ALL the examples are the same in every run.
settings.register_profile("sunzi", deadline=None, derandomize=_REQUIRE_ALL)
settings.register_profile("quick", settings.get_profile("sunzi"), max_examples=25)
settings.load_profile("sunzi")


@pytest.fixture(autouse=True, scope="module")
def fixed_words_of_a_file():
    """What fixtures of a file report is the same in every run; see ``fixed_words``."""
    from repeatable import fixed_words

    with fixed_words():
        yield


@pytest.fixture(autouse=True)
def fixed_words_of_a_test():
    """What clients without a seed report is the same in every run of a test, whichever tests ran before."""
    from repeatable import fixed_words

    with fixed_words():
        yield


@pytest.fixture(scope="session")
def programs():
    """A directory with the programs ``python`` and ``sunzi``, which start without importing anything."""
    from preloaded import preloaded

    with preloaded() as directory:
        yield directory


def pytest_addoption(parser):
    parser.addoption(
        "--long",
        action="store_true",
        help="more settings, runs and requests; scripts/torture does this",
    )


def pytest_configure(config):
    """One directory for the temporary files of all processes, removed at the end; ``tmp_path`` stays where it was."""
    if config.option.markexpr == "not slow":
        settings.load_profile("quick")
    if not hasattr(config, "workerinput"):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
        directory = tempfile.TemporaryDirectory(prefix="sunzi-tests-", ignore_cleanup_errors=True)
        config.add_cleanup(directory.cleanup)
        Path(directory.name).chmod(0o711)  # PostgreSQL runs as another user
        os.environ["TMPDIR"] = tempfile.tempdir = directory.name


def pytest_collection_finish():
    """Thousands of tests stay in memory to the end: let no garbage collection look at them."""
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        """Runs each file in one process, so that its fixtures are created once, and all Spark tests in the same
        process.
        """

        def _split_scope(self, nodeid):
            path = nodeid.partition("::")[0]
            return "spark" if "test_spark" in path else path

    config.option.loadscopereorder = False  # keep the order below instead of sorting by number of tests
    return ByFile(config, log)


_SLOW_FOLDERS = {"proof", "reproduction"}
_SLOW_FIXTURES = {"java", "server", "killable_server", "browser", "chromium", "client_directory"}
# Files that take longest start first, so that all processes end at about the same time.
_LONGEST = (
    *("test_spark", "test_spark_jobs", "test_coverage", "test_variance", "test_moduli_choice", "test_enumeration"),
    *("test_testing", "test_claims", "test_experiments", "test_crashes", "test_fuzz", "test_committed", "test_page"),
    *("test_kills", "test_docs", "test_tutorials", "test_snippets", "test_efficient", "test_health", "test_limits"),
    *("test_axes", "test_browser", "test_plan", "test_no_extras", "test_certainty", "test_device", "test_uploads"),
    *("test_privacy_audit", "test_faults", "test_npm_package", "test_benchmarks", "test_postgres", "test_poisoning"),
    *("test_comparison", "test_survey", "test_framework", "test_tally_columns", "test_vectors", "test_openapi"),
    *("test_malformed", "test_writer", "test_parquet_files", "test_power_cuts"),
)


def pytest_ignore_collect(collection_path, config):
    """Do not import folders and files of which ``-m "not slow"`` leaves out all tests."""
    if config.option.markexpr != "not slow":
        return None
    all_slow = collection_path.name in _SLOW_FOLDERS or (
        collection_path.suffix == ".py" and "\npytestmark = pytest.mark.slow" in collection_path.read_text("utf-8")
    )
    return True if all_slow else None


def pytest_collection_modifyitems(config, items):
    """Leave out tests marked long, unless --long is given. Mark as slow all proofs, the reproduction, and tests that
    need Spark, PostgreSQL, a browser or Node.
    """
    if not config.getoption("--long"):
        items[:] = [item for item in items if item.get_closest_marker("long") is None]
    for item in items:
        parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
        costly = _SLOW_FIXTURES & set(item.fixturenames) or "postgres" in map(str, parameters)
        if costly or item.path.parent.name in _SLOW_FOLDERS:
            item.add_marker("slow")
    items.sort(key=lambda item: _LONGEST.index(item.path.stem) if item.path.stem in _LONGEST else len(_LONGEST))


def _skips(config):
    """Reports of skipped tests and modules; complete only in the process that writes to the terminal."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    return [] if reporter is None or hasattr(config, "workerinput") else reporter.stats.get("skipped", [])


def pytest_sessionfinish(session):
    if _REQUIRE_ALL and _skips(session.config) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter, config):
    skips = _skips(config)
    if _REQUIRE_ALL and skips:
        terminalreporter.section("skipped, though SUNZI_REQUIRE_ALL is set", red=True, bold=True)
        for report in skips:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
            terminalreporter.line(f"{report.nodeid}: {reason}")
