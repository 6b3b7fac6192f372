"""What of a host decides which of its layers can be factors for a user, and what would make the others possible.

Reads only, nothing is changed. What each layer needs is declared with its keys (`experiment.layers`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from pgstrata.errors import PgstrataError
from pgstrata.experiment.layers import LAYERS
from pgstrata.experiment.needs import HostLine, programs_needed
from pgstrata.model.abilities import Abilities, CgroupMount, HostCase
from pgstrata.model.doctor import LayerFinding, Possible
from pgstrata.model.kernel_files import parse_field
from pgstrata.model.mounts import parse_mounts
from pgstrata.ports.host import Command, Host

_NEEDS: Final = tuple(need for layer in LAYERS.values() for line in layer.host for need in line.needs)
PROGRAMS: Final = (
    *dict.fromkeys(program for need in _NEEDS for program in need.programs),
    *("ssh", "sudo", "git", "perf", "cc", "gcc", "clang", "make", "bison", "flex", "perl", "meson", "ninja", "mvn"),
)
_FILES: Final = (
    *dict.fromkeys(file for need in _NEEDS for file in need.files),
    *("/proc/self/mountinfo", "/proc/loadavg", "/proc/meminfo", "/proc/swaps", "/proc/sys/vm/swappiness"),
    *("/proc/sys/kernel/perf_event_paranoid", "/sys/kernel/mm/transparent_hugepage/shmem_enabled"),
)
# Folders of administration are not on every user's PATH, and what is run by sudo finds its programs there all the same.
_SCRIPT: Final = """
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
for name in "$@"; do
    where=$(command -v -- "$name") && echo "program $name $where"
done
for path in /dev/loop-control /run/systemd/system /dev/kvm; do
    [ -e "$path" ] && echo "exists $path"
done
modules=/lib/modules/$(uname -r)
grep -hoE '/(ext4|xfs|btrfs|loop)\\.ko' "$modules/modules.dep" "$modules/modules.builtin" 2>/dev/null |
    sed 's|^/|module |; s|\\.ko$||' | sort -u
for file in /sys/block/*/queue/scheduler; do
    [ -r "$file" ] && echo "scheduler $(cat "$file")"
done
echo "uid $(id -u)"
"""
_SUDO_SECONDS: Final = 5.0
_CAP_SYS_ADMIN: Final = 21
"""Bit of a capability set, from linux/capability.h; root of most containers lacks it."""


def observe_abilities(host: Host, *more: str) -> Abilities:
    """Look at a host, in a few exchanges, and read `more` files too; what cannot be read counts as not there."""
    found = host.read_files((*_FILES, *more))
    files = {path: content.decode("utf-8", "replace").strip() for path, content in found.items()}
    said = host.run(Command(argv=("sh", "-c", _SCRIPT, "sh", *PROGRAMS), folder="/"), timeout=30, check=False).text
    superuser = "uid 0" in said.splitlines()
    programs = parse_programs(said)
    groups = [mount for mount in parse_mounts(files.get("/proc/self/mountinfo", "")) if mount.kind == "cgroup2"]
    controllers = host.read_files([f"{mount.path}/cgroup.controllers" for mount in groups])
    return Abilities(
        superuser=superuser,
        root=superuser and has_capability(files.get("/proc/self/status", ""), _CAP_SYS_ADMIN),
        sudo=not superuser and "sudo" in programs and _sudo_works(host),
        programs=programs,
        existing=frozenset(_words(said, "exists")),
        modules=frozenset(_words(said, "module")),
        files=files,
        schedulers=_words(said, "scheduler"),
        cgroups=parse_cgroups(
            files.get("/proc/self/mountinfo", ""),
            {path: content.decode("utf-8", "replace") for path, content in controllers.items()},
        ),
    )


def parse_programs(said: str) -> Mapping[str, str]:
    """Paths of programs by name, from lines `program NAME PATH`."""
    pairs = (line.partition(" ") for line in _words(said, "program"))
    return {name: path for name, _, path in pairs if path}


def _words(said: str, kind: str) -> tuple[str, ...]:
    return tuple(line.removeprefix(f"{kind} ") for line in said.splitlines() if line.startswith(f"{kind} "))


def _sudo_works(host: Host) -> bool:
    try:
        return host.run(Command(argv=("sudo", "-n", "true"), folder="/"), timeout=_SUDO_SECONDS, check=False).code == 0
    except PgstrataError:
        return False


def has_capability(status: str, bit: int) -> bool:
    """Whether a capability is effective, from /proc/self/status; true where nothing is said of capabilities."""
    found = parse_field(status, "CapEff")
    return not found or bool(int(found, 16) >> bit & 1)


def parse_cgroups(mountinfo: str, controllers: Mapping[str, str]) -> tuple[CgroupMount, ...]:
    """Mounts of control groups; those of version 2 name their controllers in a file, those of version 1 as options."""
    found = []
    for mount in parse_mounts(mountinfo):
        if mount.kind == "cgroup2":
            names = frozenset(controllers.get(f"{mount.path}/cgroup.controllers", "").split())
        elif mount.kind == "cgroup":
            names = frozenset(mount.super_options)
        else:
            continue
        version = 2 if mount.kind == "cgroup2" else 1
        found.append(CgroupMount(path=mount.path, version=version, controllers=names, writable="rw" in mount.options))
    return tuple(found)


_COMPILERS: Final = ("gcc", "cc", "clang")
_SUDO: Final = "by sudo"
_SSH: Final = HostLine(
    key="host", needs=(programs_needed("ssh"),), note=lambda _: "machines that ssh reaches", root=False
)


def judge_layers(case: HostCase) -> tuple[LayerFinding, ...]:
    """Every factor of a host below the server."""
    layers = ((name, line) for name, layer in LAYERS.items() for line in layer.host)
    return (*_builds(case), *(_judge(case, name, line) for name, line in layers), _judge(case, "host", _SSH))


def _builds(case: HostCase) -> Iterator[LayerFinding]:
    programs = case.abilities.programs
    compiler = next((name for name in _COMPILERS if name in programs), _COMPILERS[0])
    grammars = programs_needed("bison", "flex", "perl").lack(case)
    systems = "meson or configure" if {"meson", "ninja"} <= programs.keys() else "configure"
    # archives up to 16 bring what these make
    note = f"archives up to 16; for git and from 17 on it {grammars}" if grammars else f"{compiler}, {systems}"
    build = HostLine(key="server=build:", needs=(programs_needed(compiler, "make"),), note=lambda _: note, root=False)
    yield _judge(case, "server", build)
    yield _judge(case, "server", HostLine(key="server=maven:", needs=(programs_needed("mvn"),), root=False))


def _judge(case: HostCase, layer: str, line: HostLine) -> LayerFinding:
    abilities = case.abilities
    lack = next((lack for need in line.needs if (lack := need.lack(case))), "")
    if lack:
        return LayerFinding(layer=layer, key=line.key, possible=Possible.NOT_ON_HOST, note=lack)
    found = LayerFinding(layer=layer, key=line.key, possible=Possible.YES, note=line.note(case))
    if not line.root or abilities.root:
        return found
    if abilities.sudo:
        return replace(found, note=f"{found.note}, {_SUDO}" if found.note else _SUDO)
    # root of a container, whom the kernel does not take for one
    needed = "a container with CAP_SYS_ADMIN" if abilities.superuser else "root, or sudo without a password"
    return replace(found, possible=Possible.NOT_FOR_USER, note=f"needs {needed}")
