"""Pure: which layers of a host can be factors for a user, and what would make the others possible, in a phrase each.

What each layer needs is declared with its keys (`experiment.layers`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from pgstrata.experiment.layers import LAYERS
from pgstrata.experiment.needs import HostLine, programs_needed
from pgstrata.model.abilities import HostCase
from pgstrata.model.doctor import LayerFinding, Possible

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
