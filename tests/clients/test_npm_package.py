"""The npm package: packed from a clean copy, installed without a network, used by import, require and script tag."""

import json
import os
import shutil
import subprocess
import tarfile

import browser
import pages
import pytest
from javascript import CLIENT, ROOT
from playwright.sync_api import sync_playwright

pytestmark = pytest.mark.slow

ENTRIES = ["sunzi", "sunzi/device", "sunzi/node", "sunzi/reading", "sunzi/records", "sunzi/subsets", "sunzi/texts"]
PLAN = (ROOT / "conformance" / "v1" / "grr_k5.json").read_text()


def run(program, directory):
    settings = {**os.environ, "npm_config_offline": "true", "npm_config_update_notifier": "false"}
    done = subprocess.run(
        program, cwd=directory, env=settings, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def tarball(client_directory, tmp_path_factory):
    """What `npm pack` makes of a fresh clone, whose dependencies are installed."""
    directory = tmp_path_factory.mktemp("clone") / "javascript"
    shutil.copytree(client_directory, directory, ignore=shutil.ignore_patterns("dist", "node_modules", "*.tgz"))
    (directory / "node_modules").symlink_to((client_directory / "node_modules").resolve())
    name = run(["npm", "pack"], directory).stdout.split()[-1]
    return directory / name


@pytest.fixture(scope="module")
def project(tarball, tmp_path_factory):
    """An empty directory with only the package installed."""
    directory = tmp_path_factory.mktemp("project")
    run(["npm", "install", "--no-audit", "--no-fund", str(tarball)], directory)
    assert [path.name for path in (directory / "node_modules").iterdir() if path.name[0] != "."] == ["sunzi"]
    return directory


@pytest.fixture(scope="module")
def installed(project):
    return project / "node_modules" / "sunzi"


def test_the_tarball_has_code_types_maps_licence_and_changelog(tarball):
    with tarfile.open(tarball) as archive:
        names = {name.removeprefix("package/") for name in archive.getnames()}
    assert {"package.json", "README.md", "CHANGELOG.md", "LICENSE", "dist/sunzi.script.js"} <= names
    for entry in ENTRIES:
        name = "index" if entry == "sunzi" else entry.removeprefix("sunzi/")
        assert {f"dist/{name}.js", f"dist/{name}.js.map", f"dist/types/{name}.d.ts"} <= names
    assert all(name.startswith("dist/") or name.count("/") == 0 for name in names)


def test_the_metadata(installed):
    about = json.loads((installed / "package.json").read_text())
    assert about["license"] == "Apache-2.0"
    assert (installed / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert len(about["keywords"]) >= 5
    assert about["repository"]["directory"] == "clients/javascript"
    # The first versions in which `require` loads ES modules.
    assert about["engines"] == {"node": "^20.19.0 || >=22.12.0"}
    assert "dependencies" not in about
    for field in ("main", "types", "unpkg", "jsdelivr"):
        assert (installed / about[field]).is_file()
    targets = [each for each in about["exports"].values() if isinstance(each, dict)]
    assert all((installed / path).is_file() for target in targets for path in target.values())


def test_source_maps_hold_the_sources(installed):
    modules = sorted((installed / "dist").glob("*.js"))
    sources = set()
    for module in modules:
        assert module.read_text().rstrip().endswith(f"//# sourceMappingURL={module.name}.map")
        mapped = json.loads((installed / "dist" / f"{module.name}.map").read_text())
        assert len(mapped["sources"]) == len(mapped.get("sourcesContent", []))
        sources |= {source.removeprefix("../src/") for source in mapped["sources"]}
    assert sources >= {"client.ts", "plan.ts", "device/device.ts", "designs/subsets.ts", "reading.ts"}


USE = f"""
const plan = new entries["sunzi"].Plan(JSON.parse({json.dumps(PLAN)}).plan);
const client = new entries["sunzi"].Client(plan, {{ maxEpsilon: 1 }});
const report = entries["sunzi/reading"].readReport(plan, client.report(3));
const names = Object.keys(entries["sunzi/device"]).length + Object.keys(entries["sunzi/node"]).length;
console.log(JSON.stringify([report.payload < 5, names > 5, entries["sunzi/subsets"].subsets !== undefined, version]));
"""


@pytest.mark.parametrize("kind", ["import", "require"])
def test_the_package_is_imported_and_required(kind, project):
    load = "await import" if kind == "import" else "require"
    start = f"const entries = {{ {', '.join(f'{json.dumps(each)}: {load}({json.dumps(each)})' for each in ENTRIES)} }};"
    version = {"import": "undefined", "require": 'require("sunzi/package.json").version'}[kind]
    program = project / ("program.mjs" if kind == "import" else "program.cjs")
    program.write_text(f"{start}\nconst version = {version};\n{USE}")
    done = run(["node", program.name], project)
    wanted = json.loads((CLIENT / "package.json").read_text())["version"] if kind == "require" else None
    assert json.loads(done.stdout) == [True, True, True, wanted]
    assert done.stderr == ""


def test_the_package_in_a_script_tag(installed, tmp_path):
    """The script defines one global, and a plan travels to a worker and through storage."""
    (tmp_path / "sunzi.js").write_bytes((installed / "dist" / "sunzi.script.js").read_bytes())
    (tmp_path / "worker.js").write_text(
        """
        importScripts("sunzi.js");
        onmessage = ({ data }) => postMessage([...new sunzi.Client(data, { maxEpsilon: 1 }).report(3)]);
        """
    )
    (tmp_path / "page.html").write_text(
        '<!doctype html><title>x</title><link rel="icon" href="data:,"><script src="sunzi.js"></script>'
    )
    program = """async (source) => {
      const plan = new sunzi.Plan(source);
      localStorage.setItem("plan", JSON.stringify(plan));
      const offline = new sunzi.Client(localStorage.getItem("plan"), { maxEpsilon: 1 });
      const worker = new Worker("worker.js");
      const answer = new Promise((resolve) => { worker.onmessage = ({ data }) => resolve(data); });
      worker.postMessage(plan);
      const device = await sunzi.Device.open({ lifetimeEpsilon: 1, maxEpsilon: 1 });
      const reports = [offline.report(3), new sunzi.Client(structuredClone(plan), { maxEpsilon: 1 }).report(3)];
      const body = await new Response(reports[0]).arrayBuffer();
      return [reports.every(([first]) => first < 5), body.byteLength, (await answer)[0] < 5, await device.spent("x"),
        offline.plan.fingerprint === plan.fingerprint, Object.keys(window).filter((name) => /sunzi/i.test(name))];
    }"""
    with (
        pages.static(tmp_path) as origin,
        sync_playwright() as playwright,
        browser.open_browser(playwright) as chromium,
        browser.open_page(chromium, f"{origin}/page.html") as (page, watch),
    ):
        assert page.evaluate(program, json.loads(PLAN)["plan"]) == [True, 1, True, "0", True, ["sunzi"]]
        assert watch.complaints == []
