"""Finds names of hosts and users in a study, in places where such names usually occur, to be replaced everywhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

from pgstrata.model.codec import parse_json

ORDINARY: Final = frozenset((
    "admin", "all", "any", "app", "base", "benchmark", "bin", "boot", "build", "builder", "by-id", "by-label",
    "by-path", "by-uuid", "cache", "cgroup", "client", "clone", "clones", "cluster", "control", "data", "database",
    "databases", "datasets", "db", "debian", "default", "dev", "disk", "etc", "ext4", "false", "fedora", "git",
    "global", "home", "host", "hosts", "install", "installations", "kernel", "lib", "lib64", "libexec", "linux",
    "local", "localdomain", "localhost", "lock", "log", "logs", "lost+found", "machine", "main", "mapper", "master",
    "media", "mnt", "net", "netns", "network", "nobody", "none", "null", "off", "on", "opt", "pg", "pg_hba.conf",
    "pg_ident.conf", "pg_log", "pg_tblspc", "pg_wal", "pgdata", "pgsql", "pgstrata", "postgres", "postgresql",
    "postgresql.conf", "primary", "proc", "prod", "production", "pts", "python", "random", "replica", "root", "run",
    "sbin", "scratch", "server", "servers", "service", "share", "shared", "shm", "sites", "sockets", "spool", "src",
    "srv", "ssh", "standby", "state", "storage", "studies", "study", "sys", "system", "temp", "test", "tests",
    "tmp", "true", "ubuntu", "urandom", "user", "users", "usr", "var", "vm", "wal", "work", "xfs", "zero",
))  # fmt: skip
"""Words that name nobody, or that are common in evidence: replaced only in places that can only hold a name."""

_DEVICE: Final = re.compile(
    r"(?:[hsv]d|xvd)[a-z]{1,2}\d*|(?:nvme\d+n\d+|mmcblk\d+)(?:p\d+)?|(?:dm-|md|loop|ram|zram|sr|tty|ttyS|fd)\d*"
)
_NUMBERED: Final = re.compile(
    r"v?\d+(?:[.rc]\d+)*|(?:pg|postgres|postgresql)-?\d+(?:\.\d+)*|REL_?\d\w*|\.s\.PGSQL\.\d+(?:\.lock)?"
)
_NAME: Final = r"[A-Za-z0-9_](?:[\w.-]*\w)?"
_HOSTS: Final = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        rf"^/proc/sys/kernel/(?:host|domain)name:({_NAME})$",
        rf"server at \"({_NAME})\"",
        rf"\b(?:host|hostname|PGHOST)\s*=\s*['\"]?({_NAME})",
        rf"^(?://)?({_NAME})[:/]\S* \S+ (?:nfs4?|cifs|smb3|glusterfs|ceph|9p)\b",
        rf"^cluster_name\t({_NAME})\t",
        rf"\bssh://(?:{_NAME}@)?({_NAME})",
        rf"\bssh:(?:{_NAME}@)?({_NAME})",
        rf"\bpostgres(?:ql)?://(?:{_NAME}(?::[^@\s]{{0,255}})?@)?({_NAME})",
    )
)
_USERS: Final = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        rf"/home/({_NAME})",
        rf"\b(?:user|PGUSER)\s*=\s*['\"]?({_NAME})",
        rf"\bssh:(?://)?({_NAME})@",
        rf"\bpostgres(?:ql)?://({_NAME})(?::[^@\s]{{0,255}})?@",
        rf"(?:role|user) \"({_NAME})\"",
    )
)
_DESTINATION: Final = re.compile(rf"(?:ssh://)?(?:({_NAME})@)?({_NAME})(?::\d+)?")
_WITH_VALUE: Final = frozenset("BbcDEeFIiJLlmOopPQRSWw")
"""Options of ssh that have a value."""
_PATH: Final = re.compile(r"(?<![^\s'\"=:,(<>\[|;])(?:/[\w.+@%~-]+){2,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Names to be replaced wherever they occur as a word, each once; `kept` are names too ordinary for that."""

    hosts: tuple[str, ...]
    users: tuple[str, ...]
    words: tuple[str, ...]
    kept: tuple[str, ...]


def is_ordinary(part: str) -> bool:
    """Whether a part of a path, or a name, is so common that it identifies nobody."""
    known = part.casefold() in ORDINARY or len(part) == 1
    return known or any(pattern.fullmatch(part) for pattern in (_DEVICE, _NUMBERED))


def find_terms(plan: bytes, texts: Iterable[str], words: Iterable[str]) -> Terms:
    """Names that occur in the plan and in other files, and words that the user gives.

    Args:
        plan: content of plan.json.
        texts: texts of the other files.
        words: words of the user; they are replaced even if they are ordinary.
    """
    hosts: dict[str, None] = {}
    users: dict[str, None] = {}
    parts: dict[str, None] = {}
    for text in _strings(parse_json(plan)):
        _gather(text, hosts, users)
        parts |= dict.fromkeys(_unusual_parts(text))
    for user, host in _destinations(parse_json(plan)):
        hosts |= dict.fromkeys(filter(None, (host,)))
        users |= dict.fromkeys(filter(None, (user,)))
    for text in texts:
        _gather(text, hosts, users)
    own = tuple(dict.fromkeys(word for word in words if word))
    kept = sorted(name for name in (*hosts, *users) if is_ordinary(name) and name not in own and name != "localhost")
    return Terms(
        hosts=tuple(name for name in hosts if not is_ordinary(name)),
        users=tuple(name for name in users if not is_ordinary(name) and name not in hosts),
        words=tuple(dict.fromkeys((*own, *(part for part in parts if part not in hosts and part not in users)))),
        kept=tuple(dict.fromkeys(kept)),
    )


def _gather(text: str, hosts: dict[str, None], users: dict[str, None]) -> None:
    for patterns, found in ((_HOSTS, hosts), (_USERS, users)):
        for pattern in patterns:
            found.update(dict.fromkeys(name for name in pattern.findall(text) if not _is_number(name)))


def _is_number(name: str) -> bool:
    """Whether it has no letter, such as an address: addresses are replaced by their own pattern."""
    return not re.search(r"[A-Za-z]", name)


def _unusual_parts(text: str) -> Iterator[str]:
    for path in _PATH.findall(text):
        if not is_of_system(path):
            yield from (part for part in PurePosixPath(path).parts[1:] if not is_ordinary(part))


def is_of_system(path: str) -> bool:
    """Whether a path is in a system folder, whose files are the same on every machine."""
    parts = path.split("/")
    return parts[1] in {"proc", "sys", "usr", "lib", "lib64", "lib32", "bin", "sbin", "boot", "etc"} and (
        parts[1:3] != ["usr", "local"]
    )


def _destinations(data: Any) -> Iterator[tuple[str, str]]:
    """Users and names of hosts, either may be empty, from services of running servers and ssh destinations."""
    for each in data["plan"]["experiment"]["environments"]:
        server: Mapping[str, Any] = each["server"]
        if server["kind"] == "dsn" and re.fullmatch(_NAME, server["value"]):
            yield "", server["value"]
        machines = [each.get("host", {}), *each.get("client_hosts", ())]
        named = [machine.get("destination", "") for machine in machines]
        for destination in (*named, *_destinations_of_ssh(server.get("restart", ()))):
            if found := _DESTINATION.fullmatch(destination):
                yield found[1] or "", found[2]


def _destinations_of_ssh(command: Sequence[str]) -> Iterator[str]:
    """Where a command logs in by ssh: the first word behind its options (ssh(1))."""
    words = iter(command)
    for word in words:
        if PurePosixPath(word).name != "ssh":
            continue
        for option in words:
            if not option.startswith("-"):
                yield option
                break
            letters = option[1:]
            # the rest of a word is the value of its first option that has one
            if next((each for each in range(len(letters)) if letters[each] in _WITH_VALUE), None) == len(letters) - 1:
                next(words, "")


def _strings(value: Any) -> Iterator[str]:
    """Every text in JSON, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
