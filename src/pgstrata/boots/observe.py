"""Reads the kernels and boot loaders of a machine, in one exchange."""

from __future__ import annotations

from typing import Final

from pgstrata.boots.menu import BootMenu, parse_menu
from pgstrata.ports.host import Command, Host
from pgstrata.system.boots import MENU_MARK, READ_MENU

_SECONDS: Final = 60.0


def observe_menu(host: Host, privilege: tuple[str, ...]) -> BootMenu:
    """The kernels of a machine and the ways to start one of them; nothing is changed.

    Args:
        host: the machine, as the user of pgstrata there.
        privilege: words to put before a command that needs root; reading the boot loader's menu does.

    Raises:
        HostLostError, HostNotFitError: the machine cannot be asked.
    """
    said = host.run(Command(argv=(*privilege, *READ_MENU.argv)), timeout=_SECONDS, check=False).text
    sections: dict[str, str] = {}
    for part in said.split(MENU_MARK)[1:]:
        name, _, text = part.partition("\n")
        sections[name.strip()] = text
    return parse_menu(sections)
