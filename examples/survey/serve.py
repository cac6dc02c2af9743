"""A survey with one question on this machine: the collector, the page with the question, and the live result.

    python examples/survey/serve.py            # then open the printed address

The page is static; it loads the JavaScript client from clients/javascript/dist (`npm ci && npm run build` there). Once
you agree, your browser randomises your answer and sends only the noisy report. Simulated visitors answer first, so that
there is something to see; --visitors 0 leaves them out.
"""

from __future__ import annotations

import argparse
import signal
from pathlib import Path

import numpy as np
from starlette.staticfiles import StaticFiles

import sunzi
from sunzi.collector import RemoteCollector, serve

HERE = Path(__file__).resolve().parent
CLIENT = HERE.parent.parent / "clients" / "javascript" / "dist"
BROWSERS = ["Firefox", "Chrome", "Safari", "Edge", "Opera", "another"]
SHARES = [0.27, 0.41, 0.16, 0.09, 0.04, 0.03]
EPSILON = 2


def simulate(address: str, visitors: int) -> None:
    """Send reports of simulated visitors."""
    remote = RemoteCollector(f"{address}/v1/collections/browsers", max_epsilon=EPSILON)
    epoch = remote.current()
    answers = np.random.default_rng().choice(len(BROWSERS), visitors, p=SHARES)
    remote.upload(epoch, epoch.plan.client().report_indices(answers))
    remote.close()


def main() -> None:
    """Serve until Ctrl+C."""
    parser = argparse.ArgumentParser(description="A survey whose answers are randomised in the browser.")
    parser.add_argument("--port", type=int, default=8766, help="port on 127.0.0.1; 0 for any free port (default: 8766)")
    parser.add_argument("--visitors", type=int, default=3000, help="number of simulated visitors (default: 3000)")
    arguments = parser.parse_args()
    if not (CLIENT / "index.js").exists():
        parser.error(f"the JavaScript client is not built: run npm ci && npm run build in {CLIENT.parent}")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # stop cleanly, as on Ctrl+C
    plan = sunzi.make_plan("grr", sunzi.Domain(BROWSERS, other="another"), EPSILON)
    with serve({"browsers": plan}, port=arguments.port) as collector:
        collector.app.mount("/survey/client", StaticFiles(directory=CLIENT))
        collector.app.mount("/survey", StaticFiles(directory=HERE / "page", html=True))
        print(f"The survey: {collector.url}/survey/", flush=True)
        print(f"The dashboard: {collector.url}/", flush=True)
        print("Press Ctrl+C to stop; nothing is kept.", flush=True)
        if arguments.visitors:
            simulate(collector.url, arguments.visitors)
        collector.wait()


if __name__ == "__main__":
    main()
