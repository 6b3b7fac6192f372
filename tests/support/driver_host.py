"""A machine for tests of drivers: files in a dictionary, and commands that are noted instead of being run."""

from dataclasses import dataclass, field

from pgstrata.errors import HostFileError


@dataclass
class DriverHost:
    files: dict = field(default_factory=dict)
    spawned: list = field(default_factory=list)
    ran: list = field(default_factory=list)

    def write(self, path, content, *, mode=0o600):
        self.files[path] = content

    def read(self, path, *, offset=0):
        if path not in self.files:
            raise HostFileError("no such file", where=path)
        return self.files[path][offset:]

    def spawn(self, command, *, stdout, stderr, on_parent_death=None):
        self.spawned.append((command, stdout, stderr))
        return "process"
