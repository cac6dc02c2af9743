"""The files of docs/running.md, tried with the programs that use them; the dashboard with a library of Grafana."""

import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import packages
import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
from ports import free_port
from running import running

import sunzi
from sunzi.cli.main import build_parser
from sunzi.collector import open_store
from sunzi.collector.stores import stored_tally

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
SYSTEMD, PROMETHEUS = EXAMPLES / "systemd", EXAMPLES / "prometheus"
DASHBOARD = json.loads((EXAMPLES / "grafana" / "sunzi.json").read_text("utf-8"))
PLAN = sunzi.make_plan("ss-compact", 50, 2, groups={"country": ["DE", "FR"]})
TOKEN = "token of the operator"
ADMIN = {"Authorization": f"Bearer {TOKEN}"}


def need(program, package):
    if shutil.which(program) is None and (reason := packages.install(package)) is not None:
        pytest.skip(reason)


def run(*command, **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def batch(seed):
    return PLAN.client(seed=seed).report_indices(np.arange(40))


def test_the_page_names_every_file():
    page = (ROOT / "docs" / "running.md").read_text("utf-8")
    folders = ("caddy", "grafana", "nginx", "prometheus", "systemd")
    files = [path.relative_to(ROOT).as_posix() for folder in folders for path in (EXAMPLES / folder).iterdir()]
    assert len(files) >= 10
    assert [name for name in files if f"](../{name})" not in page] == []


def test_systemd_accepts_the_units_and_finds_little_exposed(tmp_path):
    need("systemd-analyze", "systemd")
    for name in ("bin/sunzi", "libexec/sunzi-backup"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    units = [tmp_path / name for name in ("sunzi.service", "sunzi-backup.service", "sunzi-backup.timer")]
    for unit in units:
        unit.write_text((SYSTEMD / unit.name).read_text().replace("/opt/sunzi", str(tmp_path)))
    assert run("systemd-analyze", "verify", *units) == ""
    for unit in units[:2]:  # of 10
        run("systemd-analyze", "security", "--offline=true", "--threshold=12", unit)


def command_of(unit):
    text = re.sub(r"\\\n", " ", (SYSTEMD / unit).read_text())
    return shlex.split(re.search("^ExecStart=(.*)$", text, re.MULTILINE)[1])


def test_the_unit_starts_a_collector_and_the_backup_copies_its_store():
    program, command, *options = command_of("sunzi.service")
    assert (program, command) == ("/opt/sunzi/bin/sunzi", "serve")
    arguments = build_parser("serve").parse_args(["serve", *options])
    assert (arguments.host, arguments.trust_proxy) == ("127.0.0.1", ["127.0.0.1"])
    script, store, _, number = command_of("sunzi-backup.service")
    assert (EXAMPLES / "systemd" / Path(script).name).exists()
    assert (store, number.isdigit()) == (arguments.store, True)
    unit = (SYSTEMD / "sunzi.service").read_text()
    assert f"SocketBindAllow=tcp:{arguments.port}\n" in unit
    assert "128 + SIGTERM" in unit
    assert "SuccessExitStatus=143\n" in unit


def test_a_backup_of_a_running_collector_passes_the_drill(fresh_address, programs, tmp_path):
    address, restored = fresh_address(), fresh_address()
    path = {"env": os.environ | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}}
    copies = tmp_path / "copies"
    copies.mkdir()
    for day in range(1, 6):
        (copies / f"sunzi-2020010{day}T033000Z.db").touch()
    (copies / "notes.txt").touch()
    with running(address, {"default": PLAN}) as service:
        service.send_batch(batch(1), groups="country=DE")
        service.collector.open_next("default", old="keep")
        service.send_batch(batch(2), epoch=2)
        copy = Path(run(SYSTEMD / "sunzi-backup", address, copies, 3, **path).splitlines()[-1])
        service.send_batch(batch(3))
        tallies = [service.tally(epoch=1, group="country=DE"), service.tally(epoch=2)]
    left = {"notes.txt", "sunzi-20200104T033000Z.db", "sunzi-20200105T033000Z.db", copy.name}
    assert {each.name for each in copies.iterdir()} == left
    assert copy.stat().st_mode & 0o077 == 0
    shown = json.loads(run(SYSTEMD / "sunzi-restore-drill", copies, restored, **path))
    assert [epoch["reports"] for epoch in shown["epochs"]] == [40, 40]
    store = open_store(restored, create=False)
    first, second = store.epochs()
    assert stored_tally(store, first, PLAN, "country=DE") == tallies[0]
    assert stored_tally(store, second, PLAN) == tallies[1]
    store.close()
    copy.write_bytes(copy.read_bytes()[:5000])
    for _ in range(2):  # a damaged copy, and none
        assert subprocess.run(
            [SYSTEMD / "sunzi-restore-drill", copies], capture_output=True, check=False, **path
        ).returncode
        for each in copies.glob("*.db"):
            each.unlink()


def test_the_alerts_fire_when_they_should():
    need("promtool", "prometheus")
    run("promtool", "check", "config", "--syntax-only", "--lint-fatal", PROMETHEUS / "prometheus.yml")
    run("promtool", "check", "rules", "--lint-fatal", PROMETHEUS / "sunzi.rules.yml")
    run("promtool", "test", "rules", PROMETHEUS / "sunzi.tests.yml")
    rules, tests = ((PROMETHEUS / name).read_text() for name in ("sunzi.rules.yml", "sunzi.tests.yml"))
    for alert in re.findall(r"- alert: (\w+)", rules):
        assert f'alertname="{alert}"' in tests


@contextmanager
def prometheus(directory, target):
    """Prometheus with the configuration of the examples, but fast; yields what asks its interface."""
    port = free_port()
    config = (PROMETHEUS / "prometheus.yml").read_text()
    changes = {
        "127.0.0.1:8765": target,
        "/etc/prometheus/sunzi-token": str(directory / "token"),
        "_interval: 30s": "_interval: 1s",
    }
    for old, new in changes.items():
        assert old in config
        config = config.replace(old, new)
    (directory / "prometheus.yml").write_text(config)
    (directory / "token").write_text(TOKEN)
    shutil.copy(PROMETHEUS / "sunzi.rules.yml", directory)
    options = [f"--config.file={directory}/prometheus.yml", f"--storage.tsdb.path={directory}/data"]

    def ask(path, **parameters):
        with urllib.request.urlopen(
            f"http://127.0.0.1:{port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        ) as answer:
            return json.load(answer)["data"]

    command = ["prometheus", *options, f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"]
    with subprocess.Popen(command) as process:
        try:
            yield ask
        finally:
            process.terminate()


def eventually(answer):
    """The first answer that is not empty."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            if found := answer():
                return found
        except OSError:
            pass
        time.sleep(0.2)
    raise AssertionError("no answer within a minute")


def expressions():
    """The queries of the dashboard, with its variables replaced as Grafana does."""
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            text = target["expr"].replace("$__rate_interval", "1m")
            yield panel["title"], text.replace("$instance", ".*").replace("$collection", ".*")


def test_prometheus_answers_every_query_of_the_dashboard_about_a_real_collector(tmp_path):
    need("prometheus", "prometheus")
    with running(tmp_path / "store.db", {"default": PLAN}, admin_token=TOKEN) as service:
        for epoch in (1, 2, 3):
            assert service.send_batch(batch(epoch), epoch=epoch).status == 200
            service.collector.open_next("default")
        assert service.send_batch(batch(4), epoch=4).status == 200
        assert service.send_batch(b"malformed", epoch=4).status == 400
        exported = set(re.findall(r"^# TYPE (\w+)", service.get("/metrics", **ADMIN).body.decode(), re.MULTILINE))
        named = set(re.findall(r"\bsunzi_\w+", (PROMETHEUS / "sunzi.rules.yml").read_text()))
        assert named <= exported
        with prometheus(tmp_path, service.address.removeprefix("http://")) as ask:
            for title, query in expressions():
                assert eventually(lambda query=query: ask("query", query=query)["result"]), title
            (group,) = eventually(lambda: ask("rules")["groups"])
            eventually(lambda: all(rule["health"] == "ok" for rule in ask("rules")["groups"][0]["rules"]))
            assert {rule["state"] for rule in group["rules"]} == {"inactive"}
            variables = [each["definition"] for each in DASHBOARD["templating"]["list"] if each["type"] == "query"]
            for metric, label in (re.match(r"label_values\((\w+).*, (\w+)\)$", each).groups() for each in variables):
                assert ask(f"label/{label}/values", **{"match[]": metric})


def unknown_fields(given, known, place=""):
    """The places of everything in a JSON value that another one lacks or has differently."""
    if isinstance(given, dict) and isinstance(known, dict):
        for name, value in given.items():
            yield from unknown_fields(value, known[name], f"{place}.{name}") if name in known else [f"{place}.{name}"]
    elif isinstance(given, list) and isinstance(known, list) and len(given) == len(known):
        for number, pair in enumerate(zip(given, known, strict=True)):
            yield from unknown_fields(*pair, f"{place}[{number}]")
    elif given != known:
        yield place


def read_by_grafana(dashboard):
    """A dashboard as Grafana's own library reads and writes it, which knows the schemas of dashboards and panels."""
    return json.loads(JSONEncoder().encode(Dashboard.from_json(dashboard)))


def test_grafana_knows_every_field_of_the_dashboard():
    register_default_plugins()
    # Grafana writes the definition of a variable itself; the schema leaves it out.
    left_out = {
        f".templating.list[{number}].definition"
        for number, variable in enumerate(DASHBOARD["templating"]["list"])
        if variable["type"] == "query"
    }
    assert set(unknown_fields(DASHBOARD, read_by_grafana(DASHBOARD))) == left_out
    for path in ("title", "panels[6].gridPos.h", "panels[6].targets[0].expr", "panels[6].options.legend.placement"):
        wrong, renamed = renamed_field(path)
        assert renamed in set(unknown_fields(wrong, read_by_grafana(wrong)))


def renamed_field(path):
    """The dashboard with one field misspelt, and the place of that field."""
    wrong = json.loads(json.dumps(DASHBOARD))
    *outer, name = re.findall(r"\w+", path)
    place = wrong
    for step in outer:
        place = place[int(step) if step.isdecimal() else step]
    place[f"{name}s"] = place.pop(name)
    return wrong, f".{path}s"


def test_the_dashboard_is_laid_out():
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) >= 14
    places = [panel["gridPos"] for panel in panels]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    for one, other in itertools.combinations(places, 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        above = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or above
    for panel in panels:
        assert panel["description"]
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert {target["datasource"]["uid"] for target in panel["targets"]} == {"${datasource}"}
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])


def test_the_page_lists_every_metric(tmp_path):
    page = (ROOT / "docs" / "running.md").read_text("utf-8")
    listed = {
        name for row in re.findall(r"^\| (`sunzi_.*?) \|", page, re.MULTILINE) for name in re.findall(r"sunzi_\w+", row)
    }
    with running(tmp_path / "store.db", {"default": PLAN}) as service:
        text = service.get("/metrics").body.decode()
    exported = set(re.findall(r"^# TYPE (sunzi_\w+)", text, re.MULTILINE))
    assert listed == {name for name in exported if not name.endswith("_created")}
