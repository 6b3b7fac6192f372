"""The boots of this machine in a study: each ends pgstrata, and the same command goes on after it.

What the next call has to know is kept in the study: the default kernel, and the boot that was asked for until a visit
uses it. The ledger says what the machine was booted into, until it runs its default kernel again.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Final

from pgstrata.app.host import boot_entries
from pgstrata.app.site import OpenedHost
from pgstrata.app.study_hosts import StudyHosts
from pgstrata.boots.menu import choose_boots
from pgstrata.boots.observe import observe_menu
from pgstrata.errors import BootFailedError, HostNotFitError, RebootError
from pgstrata.ledger.undo import read_state
from pgstrata.model.boot import Boot
from pgstrata.model.changes import Entry
from pgstrata.model.experiment import HostSpec
from pgstrata.model.server import Fingerprint
from pgstrata.ports.host import Command, Host, observe_boot
from pgstrata.ports.store import Store
from pgstrata.system.boots import BootWay, NextBoot, boot_change, settle

REBOOTS: Final = "reboots"
"""The fingerprint of a study that says where its reboots of this machine are."""
THIS: Final = "this machine"
_HOME: Final = "home"
"""Stands for the default kernel, which is booted at the end of the study."""
_MOST_TRIES: Final = 3
_VOLATILE: Final = frozenset({"tmpfs", "ramfs"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RebootNote:
    """The state of this machine's boots that a study keeps between two calls of pgstrata.

    `home` is the release of the default kernel and `line` its command line. `asked` is the boot that was to follow the
    one with the id `left`; both are empty if none was asked for, or a visit has used it, or it did not come up. `tries`
    visits in a row have begun with `runs` runs in the study, and none of them added one.
    """

    home: str = ""
    line: str = ""
    asked: str = ""
    left: str = ""
    runs: str = ""
    tries: str = ""

    @classmethod
    def of(cls, kept: Fingerprint | None) -> RebootNote:
        """The note of a study; an empty one in a new study."""
        facts: Mapping[str, str] = kept.facts if kept is not None else {}
        return cls(**{each.name: facts.get(each.name, "") for each in fields(cls)})

    def keep(self) -> Fingerprint:
        """The note for the store."""
        return Fingerprint(facts=asdict(self))


@dataclass(slots=True, kw_only=True)
class OwnBoots:
    """Decides which boot of this machine the next visit needs (as `HostBoots` does for another machine).

    It begins no reboot: `StudyHosts.next_boot` says which one has to follow when everything is closed.
    """

    hosts: StudyHosts
    store: Store
    _boots: dict[Boot, NextBoot] = field(init=False, default_factory=dict)
    _note: RebootNote = field(init=False, default_factory=RebootNote)
    _boot_id: str = field(init=False, default="")
    _unused: bool = field(init=False, default=False)

    def require(self, boots: Iterable[Boot]) -> None:
        """Find out how to do each of these boots, and what became of the one that was asked for last.

        Raises:
            BootFailedError: it came up with something else.
            HostNotFitError: a kernel is not installed or cannot be started for one boot, or the default command line
                already has a word of a boot.
        """
        host, site = self._opened.transport, self._opened.site
        menu = observe_menu(host, site.privilege)
        self._boot_id = observe_boot(host)
        self._note = RebootNote.of(self.store.fingerprint(REBOOTS))
        if not self._note.home:
            self._keep(replace(self._note, home=menu.running, line=menu.line))
        menu = replace(menu, running=self._note.home, line=self._note.line)
        self._boots = choose_boots(menu, boots, THIS)
        self._see_outcome()

    def _see_outcome(self) -> None:
        """Wait for services if the boot that was asked for came up; BootFailedError if another one did."""
        note = self._note
        if not note.asked or self._boot_id == note.left:
            return
        asked = next((each for each in self._boots.values() if each.text == note.asked), None)
        if asked is None:
            return
        if self._runs(asked):
            self._unused = True
            self._opened.transport.run(Command(argv=settle().argv))
            return
        self._keep(replace(note, asked="", left=""))
        found = observe_menu(self._opened.transport, self._opened.site.privilege)
        remedy = (
            "look into `journalctl -b -1`, then give the same command again. The boot loader may have fallen back to "
            "its default entry, or somebody may have rebooted the machine"
        )
        if asked.way is BootWay.DEFAULT:
            remedy = (
                f"this study began with {note.home} as the default kernel: make it the default of the boot loader "
                "again and give the same command, or start a new study (--study DIR)"
            )
        raise BootFailedError(
            f"{THIS} was told to boot {asked.text} and came up with {found.running}",
            details=(f"its command line: {found.line}",),
            remedy=remedy,
        )

    def boot(self, boot: Boot, *, fresh: bool) -> None:
        """Ask for a reboot unless the machine runs as wanted; `fresh`: in a boot that no visit has used yet.

        Raises:
            RebootError: it has to be rebooted, as `StudyHosts.next_boot` says.
        """
        wanted = self._boots[boot]
        if self._runs(wanted) and (self._unused or not fresh):
            if fresh:
                self._use()
            return
        self._keep(replace(self._note, asked=wanted.text, left=self._boot_id))
        self.hosts.next_boot = wanted
        raise RebootError(f"{THIS} has to boot {wanted.text}")

    def _use(self) -> None:
        """Let a visit have the present boot; BootFailedError if the visits before it have ended without any run."""
        self._unused = False
        runs = str(len(self.store.committed()))
        tries = int(self._note.tries or 0) + 1 if self._note.runs == runs else 1
        gives_up = tries > _MOST_TRIES
        kept = "" if gives_up else str(tries)
        self._keep(replace(self._note, asked="", left="", runs=runs, tries=kept))
        if gives_up:
            raise BootFailedError(
                f"{THIS} was rebooted {_MOST_TRIES} times for the same visit, and each time the visit ended before a "
                "run was finished",
                remedy="see whether the kernel crashes under load (`journalctl -k -b -1`), then give the same command",
            )

    def at_hand(self, boot: Boot) -> bool:
        """Whether the machine runs as asked at present."""
        return self._runs(self._boots[boot])

    def keeps(self, _: Entry) -> bool:
        """Never: the connection to this machine is not opened again."""
        return False

    def give_back(self) -> None:
        """Have its default kernel booted when everything is closed, if it runs another one and needs no other boot.

        BootFailedError if a reboot for that has not changed anything: the default entry is that of the other kernel.
        """
        if self.hosts.next_boot is not None or not boot_entries(self._opened.site):
            return
        if self._note.asked == _HOME and self._note.left != self._boot_id:
            raise BootFailedError(
                f"{THIS} was rebooted and runs the same kernel again",
                remedy="its default entry has changed: choose another one, reboot",
            )
        self._keep(replace(self._note, asked=_HOME, left=self._boot_id))
        self.hosts.goes_home = True

    @property
    def _opened(self) -> OpenedHost:
        return self.hosts[HostSpec()]

    def _runs(self, wanted: NextBoot) -> bool:
        change = boot_change(wanted)
        return read_state(self._opened.transport, change.what, change.read) == wanted.text

    def _keep(self, note: RebootNote) -> None:
        self._note = note
        self.store.keep_fingerprint(REBOOTS, note.keep())


def refuse_volatile(host: Host, folders: Iterable[str]) -> None:
    """HostNotFitError if a folder lies in memory, whose contents would be lost in a reboot; absolute paths."""
    for folder in folders:
        there = folder
        while not host.exists(there):
            there = posixpath.dirname(there)
        kind = host.run(Command(argv=("stat", "--file-system", "--format=%T", "--", there))).text.strip()
        if kind in _VOLATILE:
            raise HostNotFitError(
                f"it lies in memory ({kind}), and would be lost when this machine reboots",
                where=folder,
                remedy="use a folder on a disk (--study for the study; PGSTRATA_STATE, PGSTRATA_CACHE, PGSTRATA_DATA)",
            )
