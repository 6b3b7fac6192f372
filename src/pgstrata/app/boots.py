"""The boots of one machine in a study: into the kernel that a visit asks for, and back at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from pgstrata.app.host import boot_entries, make_ledger
from pgstrata.app.site import OpenedHost
from pgstrata.app.study_hosts import StudyHosts
from pgstrata.boots.menu import BootMenu, choose_boots
from pgstrata.boots.observe import observe_menu
from pgstrata.boots.reboot import Reboot
from pgstrata.errors import (
    BootFailedError,
    CommandFailedError,
    HostNotFitError,
    LevelNotTakenError,
    PgstrataError,
    find_disk_full,
)
from pgstrata.model.boot import Boot
from pgstrata.model.changes import Entry
from pgstrata.model.experiment import HostSpec
from pgstrata.ports.host import Command, observe_boot
from pgstrata.system.boots import BOOTED, BootWay, NextBoot, boot_change, plain_reboot, settle


def own_boot(entry: Entry, study: str) -> bool:
    """Whether an entry of the ledger says that this study has booted a machine into another kernel than its own."""
    return entry.what == BOOTED and entry.owner.study == study


def begin_reboot(opened: OpenedHost, hosts: StudyHosts, wanted: NextBoot) -> None:
    """Reboot a machine of a study; it goes down seconds after this has returned.

    HostNotFitError: that is not allowed there, or the kernel could not be chosen for the next boot, such as on a full
    /boot. The machine is not rebooted then.
    """
    try:
        _begin(opened, hosts, wanted)
    except (LevelNotTakenError, CommandFailedError) as error:
        raise _not_chosen(opened, wanted, error) from error


def _begin(opened: OpenedHost, hosts: StudyHosts, wanted: NextBoot) -> None:
    change = boot_change(wanted)
    if wanted.way is BootWay.DEFAULT:
        script = plain_reboot()
    elif any(entry.value == wanted.text for entry in boot_entries(opened.site)):
        # it stands in the ledger already
        script = change.do
    else:
        make_ledger(opened.site, hosts.machine.clock, hosts.study).change(change)
        return
    opened.transport.run(Command(argv=(*opened.site.privilege, *script.argv)))


def _not_chosen(opened: OpenedHost, wanted: NextBoot, error: PgstrataError) -> HostNotFitError:
    """The error for a boot loader, kexec or reboot that failed; `error` has its last words."""
    full = find_disk_full("\n".join(error.details))
    return HostNotFitError(
        f"{wanted.way} could not prepare the boot of {wanted.text}{': a disk is full there' if full else ''}",
        where=opened.spec.text,
        details=error.details,
        remedy="free space in /boot there (`df -h /boot`), then give the same command again"
        if full
        else "the machine was not rebooted: fix what the last lines of its output name, then give the same command "
        "again",
    )


@dataclass(slots=True, kw_only=True)
class HostBoots:
    """Boots another machine, which `hosts` has open, whenever a visit needs that.

    Its default entry is not changed. The ledger of the machine says what it was booted into, until it runs its own
    kernel again. `tell` is called with what is being waited for, `gone` when a connection has been replaced.
    """

    spec: HostSpec
    hosts: StudyHosts
    tell: Callable[[str], None]
    gone: Callable[[], None]
    _menu: BootMenu | None = field(init=False, default=None)
    _boots: dict[Boot, NextBoot] = field(init=False, default_factory=dict)
    _present: NextBoot | None = field(init=False, default=None)
    _boot_id: str = field(init=False, default="")
    _visited: bool = field(init=False, default=True)

    def require(self, boots: Iterable[Boot]) -> None:
        """Find out how to do each of these boots, before anything is measured.

        Raises:
            HostNotFitError: a kernel is not installed or cannot be started for one boot, or the default command line
                already has a word of a boot.
        """
        if self._menu is None:
            self._bring_home()
            self._menu = observe_menu(self._opened.transport, self._opened.site.privilege)
            self._boot_id = observe_boot(self._opened.transport)
        self._boots = choose_boots(self._menu, boots, self.spec.text)

    def boot(self, boot: Boot, *, fresh: bool) -> None:
        """Boot the machine as asked, unless it already runs that way.

        Args:
            boot: one of the boots that were required.
            fresh: boot again if a visit has used the present boot.

        Raises:
            BootFailedError: it did not come back, or not as asked.
            HostNotFitError, HostLostError: as opening it.
        """
        wanted = self._boots[boot]
        if self._runs(wanted) and not (fresh and self._visited):
            self._visited = self._visited or fresh
            return
        try:
            self._reboot(wanted)
            self._check(wanted)
        except BootFailedError as error:
            error.asked = boot.text if error.asked else ""
            raise
        self._visited = fresh

    def at_hand(self, _: Boot) -> bool:
        """Always: a reboot of another machine does not end this process."""
        return True

    def keeps(self, entry: Entry) -> bool:
        """Whether an entry of the ledger says what the machine is booted into at present."""
        return entry.what == BOOTED and self._present is not None and entry.value == self._present.text

    def give_back(self) -> None:
        """Boot its own kernel again, if it was booted into another one."""
        if self._present is not None and self._present.way is not BootWay.DEFAULT and self._menu is not None:
            self._reboot(NextBoot(release=self._menu.running, way=BootWay.DEFAULT))

    def _bring_home(self) -> None:
        """Boot its own kernel, if a pgstrata of this study was killed and left it in another one."""
        left = [entry for entry in boot_entries(self._opened.site) if own_boot(entry, self.hosts.study)]
        if left:
            self.tell(f"{self.spec.text} still runs what an interrupted command of this study booted: {left[-1].value}")
            self._reboot(NextBoot(release="its own kernel", way=BootWay.DEFAULT))
            self._present = None

    @property
    def _opened(self) -> OpenedHost:
        return self.hosts[self.spec]

    def _runs(self, wanted: NextBoot) -> bool:
        if observe_boot(self._opened.transport) != self._boot_id:
            # it was rebooted by somebody else or by itself: boot it again, to know which kernel it runs
            self._present, self._visited = None, True
            return False
        if self._present is None:
            return wanted.way is BootWay.DEFAULT
        return self._present == wanted

    def _reboot(self, wanted: NextBoot) -> None:
        self.tell(f"booting {self.spec.text}: {wanted.text}")
        before = observe_boot(self._opened.transport)
        begin_reboot(self._opened, self.hosts, wanted)
        self._present = wanted
        waiting = Reboot(
            name=self.spec.text,
            wanted=wanted.text,
            host=lambda: self._opened.transport,
            reopen=self._reopen,
            clock=self.hosts.machine.clock,
        )
        waiting.wait(before)
        self._boot_id = observe_boot(self._opened.transport)
        self._opened.transport.run(Command(argv=settle().argv))

    def _reopen(self) -> None:
        self.gone()
        self.hosts.reopen(self.spec, keep=self.keeps)

    def _check(self, wanted: NextBoot) -> None:
        """BootFailedError if the machine came up with something else than it was told to boot."""
        read = boot_change(wanted).read
        found = self._opened.transport.run(Command(argv=read.argv)).text.strip()
        if found == wanted.text:
            return
        menu = observe_menu(self._opened.transport, self._opened.site.privilege)
        self._present = None
        # nothing of it is left, and its entry is closed
        self._reopen()
        usual = wanted.way is BootWay.DEFAULT
        raise BootFailedError(
            f"{self.spec.text} was told to boot {wanted.text} and came up with {menu.running}",
            where=self.spec.text,
            details=(f"its command line: {menu.line}",),
            remedy="its default kernel has changed since this command began: make the former one the default again, "
            "or name the kernels that you compare"
            if usual
            else "it fell back to its default entry: check its console or `journalctl -b -1` for the reason why the "
            "other kernel did not come up",
            asked="" if usual else wanted.text,
        )
