"""The source distribution holds the files that git does not ignore, so that tests run from it. Run by scripts/test."""

import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LEFT_OUT, ADDED = (".ci/",), {"PKG-INFO"}


def main(path: str) -> None:
    """Compare the names in this archive with those in the repository; outside one there is nothing to compare."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.splitlines()
    known = {name for name in listed if not name.startswith(LEFT_OUT) and (ROOT / name).is_file()}
    with tarfile.open(path) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()} - ADDED
    assert not known or held == known, f"{path} differs from the repository in {sorted(held ^ known)}"
    print(f"the source distribution holds {len(held)} files")


if __name__ == "__main__":
    main(sys.argv[1])
