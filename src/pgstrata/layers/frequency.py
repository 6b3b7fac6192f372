"""Governor and turbo of the CPUs, which hold for the whole host (Documentation/admin-guide/pm/cpufreq.rst).

Not seen running: the virtual machine on which this was written has neither, so its tests work on a copied tree.
"""

from __future__ import annotations

from typing import Final

from pgstrata.errors import HostNotFitError
from pgstrata.layers.cgroups import assert_taken
from pgstrata.model.changes import Change, ShellScript
from pgstrata.ports.host import Host
from pgstrata.ports.layer import Ledger
from pgstrata.system.commands import value_change

FOLDER: Final = "/sys/devices/system/cpu"

# Arguments: the folder, the governor. One line for each CPU.
_READ_EACH: Final = (
    'for file in "$1"/cpu[0-9]*/cpufreq/scaling_governor; do [ ! -f "$file" ] || echo "$file $(cat "$file")"; done'
)
_SET: Final = (
    'for file in "$1"/cpu[0-9]*/cpufreq/scaling_governor; do [ ! -f "$file" ] || echo "$2" >"$file" || exit 1; done'
)
# Arguments: what was read: a line for each file. A CPU that has gone offline has no file.
_SET_EACH: Final = (
    'printf "%s\\n" "$1" | while read -r file value; do [ ! -f "$file" ] || echo "$value" >"$file" || exit 1; done'
)


class Frequency:
    """Sets and reads governor and turbo; `folder` is where Linux has the CPUs."""

    def __init__(self, host: Host, folder: str = FOLDER) -> None:
        self._host = host
        self._folder = folder

    def set_governor(self, level: str, ledger: Ledger) -> None:
        """Set one governor for all CPUs; HostNotFitError where the host has no governors, or not this one."""
        path = f"{self._folder}/cpu0/cpufreq/scaling_available_governors"
        available = self._host.read_files((path,)).get(path, b"").decode().split()
        if not available:
            raise self._missing("cpu.governor", "cpufreq")
        if level not in available:
            raise HostNotFitError(
                f"the CPUs of this host have no governor {level!r}",
                where=self._host.name,
                remedy=f"take one of {', '.join(available)}, or load the module of the other one",
            )
        change = governor_change(level, self._folder)
        state = ledger.change(change)
        assert_taken(change, "\n".join(sorted({line.rpartition(" ")[2] for line in state.splitlines()})))

    def governor(self) -> str:
        """What the CPUs have now; several in one text where they differ, empty where there is none."""
        content = self._host.read_matching(f"{self._folder}/cpu[0-9]*/cpufreq/scaling_governor")
        return " ".join(sorted(set(content.decode().split())))

    def set_turbo(self, level: str, ledger: Ledger) -> None:
        """On or off; HostNotFitError where the host has no switch for it."""
        found = self._turbo()
        if found is None:
            raise self._missing("cpu.turbo", "intel_pstate/no_turbo or cpufreq/boost")
        path, words, _ = found
        change = turbo_change(path, str(words.index(level)))
        assert_taken(change, ledger.change(change))

    def turbo(self) -> str:
        """On or off; empty where the host has no switch."""
        found = self._turbo()
        return found[2] if found else ""

    def _turbo(self) -> tuple[str, tuple[str, str], str] | None:
        """The file, what its 0 and 1 mean, and what it says."""
        meanings = {
            f"{self._folder}/intel_pstate/no_turbo": ("on", "off"),
            f"{self._folder}/cpufreq/boost": ("off", "on"),
        }
        for path, content in self._host.read_files(tuple(meanings)).items():
            words = meanings[path]
            return path, words, words[content.strip() == b"1"]
        return None

    def _missing(self, key: str, what: str) -> HostNotFitError:
        return HostNotFitError(
            f"{key} cannot be set: this host has no {what} below {self._folder}",
            where=self._host.name,
            remedy=f"leave out {key}; virtual machines rarely have it, and a firmware that rules frequencies itself "
            "hides it",
        )


def governor_change(level: str, folder: str = FOLDER) -> Change:
    """One governor for all CPUs."""
    return Change(
        what="governor of the CPUs",
        value=level,
        read=ShellScript(text=_READ_EACH, arguments=(folder,)),
        do=ShellScript(text=_SET, arguments=(folder, level)),
        undo=ShellScript(text=_SET_EACH),
    )


def turbo_change(path: str, value: str) -> Change:
    """The switch at that path."""
    return value_change(f"turbo of the CPUs, {path}", path, value)
