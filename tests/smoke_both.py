"""Use sunzi and sunzi-client, installed together in the directory given. Run by scripts/test, not by pytest.

Devices report with one, the operator counts with the other, and the exceptions of the two are distinct.
"""

import importlib
import importlib.metadata
import sys
import tempfile
from pathlib import Path


def main(directory: str, *order: str) -> None:
    """Import the two in the given order, and take reports from one to the other."""
    sys.path.insert(0, directory)
    sunzi, client = (dict(zip(order, map(importlib.import_module, order), strict=True))[name] for name in names())
    for package in (sunzi, client):
        assert Path(package.__file__).is_relative_to(directory), f"{package.__name__} was imported from elsewhere"
    assert importlib.metadata.version("sunzi-client") == importlib.metadata.version("sunzi") == sunzi.__version__
    plan = sunzi.make_plan("ss-compact", ["no", "yes", "other"], epsilon=3)
    with tempfile.TemporaryDirectory() as folder:
        plan.save(Path(folder) / "plan.json")
        known = client.load_plan(Path(folder) / "plan.json")
    assert known.fingerprint == plan.fingerprint
    device = known.client(max_epsilon=3)
    tally = plan.tally([device.report("yes") for _ in range(300)])
    assert plan.estimate(tally).top(1)[0].label == "yes"
    assert not issubclass(client.SunziError, sunzi.SunziError)
    assert not issubclass(sunzi.SunziError, client.SunziError)
    print(f"{' and '.join(order)} work together")


def names() -> tuple[str, str]:
    """The two packages."""
    return "sunzi", "sunzi_client"


if __name__ == "__main__":
    main(*sys.argv[1:])
