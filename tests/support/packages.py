"""System programs that some tests need, installed if possible."""

from __future__ import annotations

import os
import shutil
import subprocess

_APT = ["apt-get", "-o", "DPkg::Lock::Timeout=300", "-qq"]  # two test processes may call this at once


def install(package: str) -> str | None:
    """Install a Debian package if this user may; return None, or the reason why it failed."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return f"{package} is not installed, and only root on Debian could install it here"
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run([*_APT, "update"], capture_output=True, env=environment, check=False)
    command = [*_APT, "-y", "--no-install-recommends", "install", package]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    return f"apt-get install {package} failed: {done.stderr[-500:]}" if done.returncode else None
