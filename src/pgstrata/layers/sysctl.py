"""The layer `sysctl`: parameters of the kernel below /proc/sys, written, read back, and read again beside the server.

What belongs here: how a name becomes a file, and how a value comes back. Which values make sense, the kernel decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pgstrata.errors import HostNotFitError, LevelNotTakenError, UsageError
from pgstrata.experiment.keys import nearest
from pgstrata.model.changes import Change, ShellScript
from pgstrata.model.experiment import Environment
from pgstrata.model.launch import Launch, Needs
from pgstrata.ports.host import Host
from pgstrata.ports.layer import Ledger
from pgstrata.ports.server import RunningServer, Sql
from pgstrata.system.commands import WRITE_VALUE, value_change

_PREFIX: Final = "sysctl."
_ROOT: Final = "/proc/sys"
_SWAP: Final = str.maketrans("./", "/.")
# One of each two counts and the other is then 0 (Documentation/admin-guide/sysctl/vm.rst). The kernel takes no 0 for
# the first two amounts, so they come back by the other one.
_TWINS: Final = (
    ("vm/dirty_bytes", "vm/dirty_ratio"),
    ("vm/dirty_background_bytes", "vm/dirty_background_ratio"),
    ("vm/overcommit_kbytes", "vm/overcommit_ratio"),
)

_READ_TWINS: Final = 'echo "$(cat "$1") $(cat "$2")"'
_UNDO_TWINS: Final = """
[ "$(cat "$1") $(cat "$2")" = "$3" ] && exit
set -- "$1" "$2" $3
if [ "$3" != 0 ]; then printf "%s\\n" "$3" >"$1"; else printf "%s\\n" "$4" >"$2"; fi
"""
# What can only be set until the next boot, with the values from which there is no way back (empty: from any). Sources:
# Documentation/admin-guide/sysctl/kernel.rst, Documentation/admin-guide/LSM/Yama.rst.
_ONE_WAY: Final[Mapping[str, frozenset[str]]] = {
    "kernel/modules_disabled": frozenset({"1"}),
    "kernel/kexec_load_disabled": frozenset({"1"}),
    "kernel/kexec_load_limit_panic": frozenset(),
    "kernel/kexec_load_limit_reboot": frozenset(),
    "kernel/yama/ptrace_scope": frozenset({"3"}),
    "kernel/unprivileged_bpf_disabled": frozenset({"1"}),
    "kernel/tainted": frozenset(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parameter:
    """A parameter that is asked for; `name` as written, `path` below /proc/sys."""

    name: str
    path: str
    value: str

    @property
    def file(self) -> str:
        return f"{_ROOT}/{self.path}"

    @property
    def twins(self) -> tuple[str, str] | None:
        """This one and the one that it sets to 0, as paths: the amount first, the share second."""
        return next((pair for pair in _TWINS if self.path in pair), None)

    def change(self) -> Change:
        """Write the value; what it was before can be written back at any time."""
        if self.twins is None:
            return value_change(f"sysctl {_dotted(self.path)}", self.file, self.value)
        files = tuple(f"{_ROOT}/{path}" for path in self.twins)
        return Change(
            what=f"sysctl {' and '.join(map(_dotted, self.twins))}",
            value=self.value,
            read=ShellScript(text=_READ_TWINS, arguments=files),
            do=ShellScript(text=WRITE_VALUE, arguments=(self.file, self.value)),
            undo=ShellScript(text=_UNDO_TWINS, arguments=files),
        )

    def of_state(self, state: str) -> str:
        """This parameter's value in what `read` of its change printed."""
        words = state.split()
        if self.twins is None or len(words) != len(self.twins):
            return state
        return words[self.twins.index(self.path)]


def sysctl_change(name: str, value: str) -> Change:
    """The change of a parameter; UsageError: that cannot be the name of one."""
    return _Parameter(name=name, path=sysctl_path(name), value=value).change()


class SysctlLayer:
    """Implements `ports.HostLayer`.

    Args:
        host: reads as the server's user.
    """

    name = "sysctl"

    def __init__(self, host: Host) -> None:
        self._host = host

    def concerns(self, environment: Environment) -> bool:
        return any(key.startswith(_PREFIX) for key in environment.layers)

    def prepare(self, environment: Environment, needs: Needs, ledger: Ledger) -> Launch:  # noqa: ARG002 - the Protocol's
        """Write what is not so already; nothing is added to the start.

        Raises:
            LevelNotTakenError: the kernel refuses a value, or makes another one of it.
            HostNotFitError: this kernel has no such parameter, or does not let it be read.
            UsageError: that cannot be the name of a parameter, or the kernel would not let it be undone.
        """
        asked = tuple(_asked(environment))
        found = self._host.read_files([each.file for each in asked])
        for each in asked:
            if each.file not in found:
                raise self._refusal(each)
            if not _same(found[each.file].decode("utf-8", "replace"), each.value):
                _refuse_one_way(each, environment)
                self._set(each, environment, ledger)
        return Launch()

    def _set(self, asked: _Parameter, environment: Environment, ledger: Ledger) -> None:
        where = f"environment {environment.name}"
        try:
            state = ledger.change(asked.change())
        except LevelNotTakenError as error:
            now = _words(self._host.read_files([asked.file]).get(asked.file, b"").decode("utf-8", "replace"))
            raise LevelNotTakenError(
                f"{asked.name} = {asked.value} was asked for, but it cannot be set: it has {now or 'no value'}",
                where=where,
                details=(error.what, *error.details),
                remedy="give a value that this kernel accepts; some parameters can only be read",
            ) from error
        taken = asked.of_state(state)
        if not _same(taken, asked.value):
            raise LevelNotTakenError(
                f"{asked.name} = {asked.value} was asked for, but the kernel made {_words(taken) or 'nothing'} of it",
                where=where,
                remedy="give a value that this kernel keeps",
            )

    def observe(self, server: RunningServer, sql: Sql) -> Mapping[str, str]:  # noqa: ARG002 - the Protocol's
        """`sysctl.NAME` as the kernel has it now; LevelNotTakenError where that is not what was asked for."""
        asked = tuple(_asked(server.environment))
        if not asked:
            return {}
        found = self._host.read_files([each.file for each in asked])
        facts: dict[str, str] = {}
        for each in asked:
            now = _words(found.get(each.file, b"").decode("utf-8", "replace"))
            if each.file not in found or not _same(now, each.value):
                raise LevelNotTakenError(
                    f"{each.name} = {each.value} was asked for, but now it has {now or 'no value'}",
                    where=f"environment {server.environment.name}",
                    remedy="something else on this host changes it, or another parameter that the experiment sets",
                )
            facts[f"{_PREFIX}{each.name}"] = now
        return facts

    def _refusal(self, asked: _Parameter) -> HostNotFitError:
        """Why a parameter cannot be read; with the nearest name that there is."""
        folder, parts = _ROOT, asked.path.split("/")
        for place, part in enumerate(parts):
            names = self._host.list_folder(folder)
            if part not in names:
                near = nearest(part, names)
                meant = _dotted("/".join((*parts[:place], near, *parts[place + 1 :]))) if near else ""
                return HostNotFitError(
                    f"this kernel has no parameter {asked.name}",
                    where=self._host.name,
                    remedy=(f"did you mean {meant}? " if meant else "") + "`sysctl -a` lists those that there are; "
                    "some come with a kernel module or a network device",
                )
            folder = f"{folder}/{part}"
        if self._host.list_folder(folder):
            return HostNotFitError(
                f"{asked.name} is a group of parameters",
                where=self._host.name,
                remedy=f"`sysctl {asked.name}` lists them",
            )
        return HostNotFitError(
            f"the user {self._host.user} cannot read the parameter {asked.name}, so pgstrata could not see whether the "
            "server has it",
            where=self._host.name,
            remedy="take it out of the experiment; set it before the run",
        )


def sysctl_path(name: str) -> str:
    """The file of a parameter below /proc/sys, as sysctl(8) understands its name.

    Where the first separator is a dot, dots separate and slashes stand for dots (net.ipv4.conf.eth0/1.forwarding);
    where it is a slash, the name is the path itself.

    Raises:
        UsageError: that leads out of /proc/sys, or nowhere.
    """
    first = next((character for character in name if character in "./"), "")
    path = name.translate(_SWAP) if first == "." else name
    if not first or any(part in {"", ".", ".."} for part in path.split("/")):
        raise UsageError(f"{name!r} cannot be the name of a sysctl", remedy="write it as sysctl -a does: vm.swappiness")
    return path


def _dotted(path: str) -> str:
    return path.translate(_SWAP)


def _asked(environment: Environment) -> Iterator[_Parameter]:
    for key, value in environment.layers.items():
        if key.startswith(_PREFIX):
            name = key.removeprefix(_PREFIX)
            yield _Parameter(name=name, path=sysctl_path(name), value=value)


def _refuse_one_way(asked: _Parameter, environment: Environment) -> None:
    finals = _ONE_WAY.get(asked.path)
    if finals is None or (finals and (_words(asked.value).lstrip("0") or "0") not in finals):
        return
    raise UsageError(
        f"{asked.name} = {asked.value} cannot be undone: the kernel keeps it until the next boot",
        where=f"environment {environment.name}",
        remedy="take it out of the experiment; set it before the run, for all environments",
    )


def _words(value: str) -> str:
    """With single blanks, as the kernel separates several numbers by tabs."""
    return " ".join(value.split())


def _same(found: str, asked: str) -> bool:
    return _words(found) == _words(asked)
