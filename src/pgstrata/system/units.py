"""A systemd unit that gives a command again after each boot, as a change that is undone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pgstrata.model.changes import Change, ShellScript

UNIT: Final = "systemd unit"
"""The beginning of the name of the change in a ledger."""
_FOLDER: Final = "/etc/systemd/system"
_READ: Final = f"""path={_FOLDER}/$1
[ -e "$path" ] || exit 0
if [ "$(cat -- "$path")" = "$2" ] && systemctl is-enabled --quiet -- "$1"; then echo enabled; else echo other; fi
"""
_DO: Final = f"""set -e
umask 022
path={_FOLDER}/$1
[ ! -e "$path" ]
printf %s "$2" >"$path.new"
sync -- "$path.new"
mv -- "$path.new" "$path"
systemctl daemon-reload
systemctl enable --quiet -- "$1"
"""
# Succeeds also if the unit is missing or only partly installed.
_UNDO: Final = f"""path={_FOLDER}/$1
[ -z "$2" ] || exit 0
if [ -e "$path" ]; then systemctl disable --quiet -- "$1"; fi
rm -f -- "$path" "$path.new"
systemctl daemon-reload
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """A command that is given again after each boot, in a folder, as a user, with these variables.

    `name` is the name of its unit. `trusted` are paths that it runs or reads; for root, no other user may be able to
    replace them.
    """

    name: str
    command: Sequence[str]
    folder: str
    user: str
    variables: Mapping[str, str]
    trusted: Sequence[str] = ()

    def render(self) -> str:
        """The unit file (systemd.unit, systemd.service, systemd.exec)."""
        lines = (
            "[Unit]",
            "Description=pgstrata goes on with a study after a reboot",
            "After=multi-user.target network-online.target",
            "Wants=network-online.target",
            "",
            "[Service]",
            f"User={_specifiers(self.user)}",
            f"WorkingDirectory={_specifiers(self.folder)}",
            *(f"Environment={_quote(f'{name}={value}', command=False)}" for name, value in self.variables.items()),
            f"ExecStart={' '.join(_quote(word, command=True) for word in self.command)}",
            "",
            "[Install]",
            "WantedBy=multi-user.target",
        )
        return "".join(f"{line}\n" for line in lines)


def unit_change(repeated: Repeated) -> Change:
    """Install and enable the unit; undoing it disables and removes it, and ends nothing that runs."""
    return Change(
        what=f"{UNIT} {repeated.name}",
        value="enabled",
        # $(...) drops the last line feed
        read=ShellScript(text=_READ, arguments=(repeated.name, repeated.render().rstrip("\n"))),
        do=ShellScript(text=_DO, arguments=(repeated.name, repeated.render())),
        undo=ShellScript(text=_UNDO, arguments=(repeated.name,)),
        lasting=True,
    )


def unquotable(words: Iterable[str]) -> str:
    """The first text with a character that a line of a unit file cannot have; empty if there is none."""
    return next((word for word in words if not word.isprintable()), "")


def _specifiers(text: str) -> str:
    return text.replace("%", "%%")


def _quote(text: str, *, command: bool) -> str:
    """A word in double quotes; in a command a dollar would begin a variable."""
    quoted = _specifiers(text.replace("\\", "\\\\").replace('"', '\\"'))
    return f'"{quoted.replace("$", "$$") if command else quoted}"'
