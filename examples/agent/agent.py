"""Print how much of a disk is used, and report this program's version once a week, if the user agrees.

Reporting is a few lines with sunzi-client alone; the rest of the program does not know of it.
"""

import argparse
import shutil
import sys
import time
from pathlib import Path

from sunzi_client import Device, RemoteCollection, SunziError, do_not_track, load_plan

VERSION = "2.1"
PLAN = load_plan(Path(__file__).with_name("plan.json"))
"""What users agree to: the question, its values and ε. Another plan is refused, so another question needs a release."""
ADDRESS = "https://collector.example/v1/collections/versions"
WEEK = 7 * 24 * 3600


def report(address: str, folder: Path) -> str:
    """Report the version to the current epoch; ask first, and ask only once. Returns what happened."""
    if do_not_track():
        return "reports are off: DO_NOT_TRACK is set"
    asked, sent = folder / "asked", folder / "sent"
    device = Device(folder / "device.db", lifetime_epsilon=PLAN.lifetime or PLAN.epsilon, max_epsilon=PLAN.epsilon)
    collection = RemoteCollection(address, max_epsilon=PLAN.epsilon, patience=5)  # connects when it is first used
    if not device.enabled and not asked.exists() and sys.stdin.isatty():
        shown = device.preview(PLAN, "version", VERSION, f"{collection.url}/epochs/1")
        print(device.notice(PLAN, "its version"))
        print(f"If it went to {shown.address}, in hexadecimal: {shown.upload.hex()}. {shown.words}")
        agreed = input("Send such a report once a week? [y/N] ").strip().lower() in ("y", "yes")
        folder.mkdir(parents=True, exist_ok=True)
        asked.touch()
        if agreed:
            device.enable()
    if not device.enabled:
        return "reports are off"
    if sent.exists() and time.time() - sent.stat().st_mtime < WEEK:
        return "reported less than a week ago"
    epoch = collection.current()
    if epoch.plan != PLAN:
        return "the collector asks another question than this program knows; nothing was reported"
    device.queue(PLAN, "version", VERSION, epoch.url)
    count = device.flush()
    if not device.waiting():
        sent.touch()
    return f"sent: {count}; {device.spent('version')} of epsilon {10 * PLAN.epsilon} spent"


def main() -> None:
    """Do the work, then report."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--path", default="/", help="the disk")
    parser.add_argument("--report", default=ADDRESS, metavar="ADDRESS", help="the collection to report to")
    parser.add_argument("--no-reports", action="store_true", help="turn reports off, and delete what was not sent")
    parser.add_argument("--folder", type=Path, default=Path.home() / ".local" / "state" / "disk-agent")
    options = parser.parse_args()
    usage = shutil.disk_usage(options.path)
    print(f"{usage.used / usage.total:.0%} of {options.path} is used")
    try:
        if options.no_reports:
            Device(options.folder / "device.db", lifetime_epsilon=1, max_epsilon=1).disable()
            options.folder.mkdir(parents=True, exist_ok=True)
            (options.folder / "asked").touch()
            print("reports are off", file=sys.stderr)
        else:
            print(report(options.report, options.folder), file=sys.stderr)
    except SunziError as error:  # never the reason why the program itself fails
        print(f"could not report: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
