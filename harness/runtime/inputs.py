"""Prepares the files and ports that some test types need. Servers find them in environment variables."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.host import ownership
from harness.plan.implementation import Implementation
from harness.runtime.database.embedded import free_port


@dataclass(frozen=True, kw_only=True)
class ServerInputs:
    """The files and ports for a server process."""

    folder: Path | None = None  # contains the files; None if there are none
    files: Mapping[str, str]  # environment variable -> name of a file in ``folder``
    ports: Mapping[str, int]  # environment variable -> port

    def variables(self, folder: str = "") -> dict[str, str]:
        """Return the environment variables. In a container, ``folder`` is where the files are mounted."""
        paths = {name: f"{folder or self.folder}/{file}" for name, file in self.files.items()}
        return {**paths, **{name: str(port) for name, port in self.ports.items()}}

    def path(self, variable: str) -> Path:
        """Return the path, on this machine, of the file or folder that an environment variable names."""
        return Path(self.folder or "") / self.files[variable]


@contextmanager
def prepare_inputs(implementation: Implementation) -> Iterator[ServerInputs]:
    """Write the files and choose the ports that the selected test types need. Remove the files at the end."""
    kinds = implementation.selected_types
    ports = {name: free_port() for name in dict.fromkeys(kind.port_variable for kind in kinds) if name}
    writers = dict.fromkeys(write for kind in kinds for write in kind.inputs)
    if not writers:
        yield ServerInputs(files={}, ports=ports)
        return
    with ownership.make_scratch_folder("inputs") as folder:
        files = {name: file for write in writers for name, file in write(folder).items()}
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)  # servers run under other accounts
        yield ServerInputs(folder=folder, files=files, ports=ports)
