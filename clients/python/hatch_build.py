"""Take the one source of the client: src/sunzi/client of the repository, or sunzi_client of a source distribution."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NAME = "sunzi_client"


class ClientSource(BuildHookInterface[Any]):
    """Puts the modules, the stub and the type marker into both kinds of distribution, and nothing else."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatchling's interface
        """Name every file and its place."""
        root = Path(self.root).resolve()
        unpacked = root / NAME
        source = unpacked if unpacked.is_dir() else root.parents[1] / "src" / "sunzi" / "client"
        for path in sorted(source.rglob("*")):
            if path.suffix in {".py", ".pyi", ".typed"}:
                build_data["force_include"][str(path)] = f"{NAME}/{path.relative_to(source).as_posix()}"
