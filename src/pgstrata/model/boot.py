"""How a machine is to be booted: the kernel, and words of its command line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pgstrata.model.experiment import ControlKind, Environment, HostSpec

KERNEL: Final = "kernel"
OPTIONS: Final = "boot.options"
NO_OPTIONS: Final = "none"
KEYS: Final = (KERNEL, OPTIONS)
"""The keys of `Environment.layers` that only a boot can bring about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Boot:
    """A boot as environments ask for it.

    `kernel` is a version, such as 6.1 (the newest that is installed of that series) or a whole release; empty for the
    one that the machine starts by itself. `options` are words that its command line has beside the usual ones.
    """

    kernel: str = ""
    options: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """For people."""
        return " ".join((self.kernel or "its default kernel", *self.options))


@dataclass(frozen=True, slots=True, kw_only=True)
class BootGroup:
    """Environments of one block that share a boot; `again`: the control that boots the same a second time."""

    host: HostSpec
    boot: Boot
    again: bool = False


def is_of_series(release: str, asked: str) -> bool:
    """Whether a release is the one that was asked for, or of that series: 6.1.0-44 is of 6.1, and 6.12 is not.

    Every release is of the empty one.
    """
    return release.startswith(asked) and not (asked[-1:].isdigit() and release[len(asked) : len(asked) + 1].isdigit())


def boot_of(environment: Environment) -> Boot:
    """The boot that an environment asks for."""
    layers = environment.layers
    words = layers.get(OPTIONS, NO_OPTIONS)
    return Boot(kernel=layers.get(KERNEL, ""), options=() if words == NO_OPTIONS else tuple(words.split()))


def asks_for_boot(environment: Environment) -> bool:
    """Whether an environment names its kernel or words of its command line."""
    return any(key in environment.layers for key in KEYS)


def booted_hosts(environments: Iterable[Environment]) -> frozenset[HostSpec]:
    """The machines that are booted for each visit, because one of their environments asks for a boot."""
    return frozenset(each.host for each in environments if asks_for_boot(each) or each.control is ControlKind.REBOOT)


def boots_of(environments: Iterable[Environment]) -> tuple[BootGroup, ...]:
    """The boots that each block of these environments takes, each once."""
    every = tuple(environments)
    booted = booted_hosts(every)
    return tuple(dict.fromkeys(group_of(each) for each in every if each.host in booted))


def group_of(environment: Environment) -> BootGroup:
    """The boot that an environment of a booted machine shares with others of its block."""
    again = environment.control is ControlKind.REBOOT
    return BootGroup(host=environment.host, boot=boot_of(environment), again=again)
