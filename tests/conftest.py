"""Settings for all tests. With SUNZI_REQUIRE_ALL=1 a skipped test fails the run: the skips are listed at its end."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

# Helpers that several directories share, and the benchmarks, which start the same servers.
sys.path[:0] = [str(Path(__file__).resolve().parent / "support"), str(Path(__file__).resolve().parents[1])]

# No window is ever opened, and pictures come out the same everywhere.
os.environ.setdefault("MPLBACKEND", "Agg")

_REQUIRE_ALL = os.environ.get("SUNZI_REQUIRE_ALL", "") not in {"", "0"}

# Machines that run tests are busy, so no example has a deadline; where a run decides something, it is repeatable.
settings.register_profile("sunzi", deadline=None, derandomize=_REQUIRE_ALL)
settings.load_profile("sunzi")


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="draw more: the runs that measure rates are six times as many")


def _skips(config):
    """The reports of skipped tests and modules. Only the process that talks to the terminal knows of them all."""
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
