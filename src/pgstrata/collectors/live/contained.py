"""Logs that docker and podman keep of a container: where they are, and the lines of the server in them. Pure.

Shapes: docker's driver json-file has an object a line; podman's k8s-file has the time, the stream, P (a part of a line)
or F (its end), and the text, as the container runtime interface of Kubernetes does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

_CONTAINER: Final = re.compile(r"(?:^|[/:-])([0-9a-f]{64})(?=\.scope|/|$)")
_LONGEST: Final = 1 << 18
"""Bytes of a line that is kept until its end comes; both programs cut lines into pieces of 16 KiB."""
_FIELDS: Final = 4


class Wrapping(StrEnum):
    """How a line of the server stands in a log."""

    PLAIN = "plain"
    JSON_FILE = "json-file"
    K8S_FILE = "k8s-file"


def container_of(memberships: str) -> str:
    """The id of the container that a process runs in, by /proc/PID/cgroup; empty where that names none."""
    for line in memberships.splitlines():
        found = _CONTAINER.findall(line)
        if found:
            return str(found[-1])
    return ""


def container_logs(container: str) -> Mapping[str, Wrapping]:
    """Where docker and podman, run by root, keep the log of a container by default."""
    return {
        f"/var/lib/docker/containers/{container}/{container}-json.log": Wrapping.JSON_FILE,
        f"/var/lib/containers/storage/overlay-containers/{container}/userdata/ctr.log": Wrapping.K8S_FILE,
    }


@dataclass(slots=True)
class Unwrapper:
    """Takes the server's lines out of a log; keeps the beginning of a line whose end is not there yet."""

    wrapping: Wrapping = Wrapping.PLAIN
    _rest: bytes = b""

    def forget(self) -> None:
        """What comes next does not follow what came before."""
        self._rest = b""

    def read(self, new: bytes) -> bytes:
        """What the server wrote, of the bytes that came to the log; lines of another shape are left out."""
        unwrap = _UNWRAP.get(self.wrapping)
        if unwrap is None:
            return new
        *lines, rest = (self._rest + new).split(b"\n")
        self._rest = rest[:_LONGEST]
        return b"".join(map(unwrap, lines))


def _of_json_file(line: bytes) -> bytes:
    """If docker has cut a line, only its last piece ends with a line feed."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return b""
    text = entry.get("log") if isinstance(entry, dict) else None
    return text.encode("utf-8", "replace") if isinstance(text, str) else b""


def _of_k8s_file(line: bytes) -> bytes:
    fields = line.split(b" ", _FIELDS - 1)
    if len(fields) != _FIELDS or fields[1] not in {b"stdout", b"stderr"}:
        return b""
    return fields[3] + (b"" if fields[2].startswith(b"P") else b"\n")


_UNWRAP: Final[Mapping[Wrapping, Callable[[bytes], bytes]]] = {
    Wrapping.JSON_FILE: _of_json_file,
    Wrapping.K8S_FILE: _of_k8s_file,
}
