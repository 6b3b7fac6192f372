"""Reads the kernels and boot loaders of a machine, and words that its kernel does not know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pgstrata.boots.menu import BootMenu, parse_menu
from pgstrata.ports.host import Command, Host
from pgstrata.system.boots import MENU_MARK, READ_MENU, READ_UNKNOWN
from pgstrata.system.privilege import require_privilege

_SECONDS: Final = 60.0
# Read by `cmdline_find_option` of x86 (bugs.c, pti.c, tsx.c, fpu/init.c, split_lock_detect).
_READ_EARLY: Final = frozenset({
    "pti", "nopti", "spectre_v2", "spectre_v2_user", "nospectre_v2", "spec_store_bypass_disable",
    "nospec_store_bypass_disable", "tsx", "split_lock_detect", "clearcpuid", "nokaslr", "no5lvl", "mem_encrypt",
    "noxsave", "noxsaveopt", "noxsaves", "nofxsr", "dis_ucode_ldr",
})  # fmt: skip


def observe_menu(host: Host, privilege: tuple[str, ...]) -> BootMenu:
    """The kernels of a machine and the ways to start one of them; nothing is changed.

    Args:
        host: the machine, as the user of pgstrata there.
        privilege: words to put before a command that needs root; reading the boot loader's menu does.

    Raises:
        HostLostError, HostNotFitError: the machine cannot be asked, or this user may not use sudo there.
        CommandFailedError: its answer is not complete.
    """
    require_privilege(host, privilege)
    said = host.run(Command(argv=(*privilege, *READ_MENU.argv)), timeout=_SECONDS).text
    sections: dict[str, str] = {}
    for part in said.split(MENU_MARK)[1:]:
        name, _, text = part.partition("\n")
        sections[name.strip()] = text
    return parse_menu(sections)


def find_unknown(host: Host, privilege: tuple[str, ...], words: Sequence[str]) -> tuple[str, ...]:
    """Those of the words of its command line that the running kernel says it does not know.

    Kernels from 5.14 on say it (`print_unknown_bootoptions` in init/main.c of Linux). They also name a few words that
    they read before their list of parameters exists; these are left out. Of older kernels nothing is known.

    Args:
        host: the machine, as the user of pgstrata there, just after its boot.
        privilege: words to put before a command that needs root; reading the kernel's messages does.
        words: those that were added to the command line.
    """
    asked = [word for word in words if word.partition("=")[0] not in _READ_EARLY]
    if not asked:
        return ()
    said = host.run(Command(argv=(*privilege, *READ_UNKNOWN.argv)), timeout=_SECONDS, check=False).text.split()
    return tuple(word for word in asked if word in said)
