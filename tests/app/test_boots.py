"""The boots of one machine in a study: when it is rebooted, what its ledger says meanwhile, and that it gets back."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from fake_clock import FakeClock
from pgstrata.app import boots as room
from pgstrata.app.boots import HostBoots
from pgstrata.boots.menu import BootMenu, InstalledKernel
from pgstrata.errors import BootFailedError, HostLostError, HostNotFitError, LevelNotTakenError
from pgstrata.model.boot import Boot
from pgstrata.model.experiment import HostKind, HostSpec
from pgstrata.system.boots import BOOTED, OTHERWISE, BootWay, boot_change, plain_reboot

FAR = HostSpec(kind=HostKind.SSH, destination="db1")
OWN, OLD = "6.12.48", "6.1.0-44"
MENU = BootMenu(
    running=OWN,
    line="root=/dev/vda ro",
    kernels=tuple(InstalledKernel(release=each, image=f"/boot/vmlinuz-{each}") for each in (OLD, OWN)),
    entries={BootWay.GRUB: {OLD: "sub>old", OWN: "sub>own"}},
    kexec=True,
)
DEFAULT, SIXONE, BARE = Boot(), Boot(kernel="6.1"), Boot(kernel="6.12", options=("mitigations=off",))


class Machine:
    """A machine that boots what it is told to, unless it falls back."""

    user = "root"

    def __init__(self):
        self.number, self.kernel, self.next, self.falls_back, self.alive = 1, OWN, None, False, True
        self.log, self.left, self.entered, self.own = [], (), (), OWN

    def read(self, path):
        if self.next is not None:
            kernel, self.next = self.next, None
            self.number += 1
            self.kernel = OWN if self.falls_back else kernel
            raise HostLostError("the connection broke", where="ssh:db1")
        return f"boot-{self.number}".encode()

    def exists(self, path):
        return True

    def told(self, kernel):
        self.log.append(kernel)
        self.next = kernel

    def run(self, command, **_):
        argv = command.argv
        if argv == plain_reboot().argv:
            self.told(self.own)
        elif "restart kexec" in argv[2]:
            self.told(" ".join(argv[4:6]).strip())
        else:  # it is asked what it runs
            return SimpleNamespace(text=self.kernel if self.kernel == " ".join(argv[4:6]).strip() else OTHERWISE)
        return SimpleNamespace(text="")


class Hosts:
    study = "s"

    def __init__(self, far):
        self.far, self.machine, self.kept = far, SimpleNamespace(clock=FakeClock()), []
        site = SimpleNamespace(privilege=(), transport=far, ledger="/ledger")
        self.opened = SimpleNamespace(transport=far, site=site, spec=FAR)

    def __getitem__(self, spec):
        return self.opened

    def reopen(self, spec, *, keep):
        self.kept.append(keep)


@pytest.fixture
def far(monkeypatch):
    machine = Machine()

    class Ledger:
        def change(self, change):
            assert change.what == BOOTED
            machine.log.append(("ledger", change.value))
            machine.entered = (SimpleNamespace(what=BOOTED, value=change.value, owner=SimpleNamespace(study="s")),)
            machine.told(change.value)

    monkeypatch.setattr(room, "observe_menu", lambda *_: replace(MENU, running=machine.kernel))
    monkeypatch.setattr(room, "make_ledger", lambda *_: Ledger())
    monkeypatch.setattr(room, "boot_entries", lambda _: (*machine.left, *machine.entered))
    return machine


def boots_of(far, *wanted):
    made = HostBoots(spec=FAR, hosts=Hosts(far), tell=lambda text: None, gone=lambda: None)
    made.require(wanted)
    return made


def test_a_kernel_is_booted_and_stands_in_the_ledger_until_the_machine_is_given_back(far):
    boots = boots_of(far, DEFAULT, SIXONE)
    boots.boot(SIXONE, fresh=True)
    assert far.kernel == OLD
    assert far.log == [("ledger", OLD), OLD]
    assert boots.keeps(SimpleNamespace(what=BOOTED, value=OLD))
    assert not boots.keeps(SimpleNamespace(what=BOOTED, value="6.12.48 mitigations=off"))
    assert not boots.keeps(SimpleNamespace(what="sysctl vm.swappiness", value=OLD))
    boots.give_back()
    assert far.kernel == OWN
    assert not boots.keeps(SimpleNamespace(what=BOOTED, value=OLD))


def test_a_visit_never_uses_the_boot_of_another_one(far):
    boots = boots_of(far, SIXONE)
    for _ in range(3):
        boots.boot(SIXONE, fresh=True)
    assert far.number == 4
    # it is written down once
    assert [each for each in far.log if isinstance(each, tuple)] == [("ledger", OLD)]


def test_a_boot_that_was_only_tried_serves_the_first_visit(far):
    boots = boots_of(far, SIXONE, BARE)
    boots.boot(SIXONE, fresh=False)
    boots.boot(SIXONE, fresh=False)
    boots.boot(SIXONE, fresh=True)
    assert far.number == 2
    boots.boot(SIXONE, fresh=True)
    assert far.number == 3


def test_the_boot_in_which_it_was_found_serves_no_visit(far):
    boots = boots_of(far, DEFAULT)
    boots.boot(DEFAULT, fresh=False)
    assert far.number == 1
    boots.boot(DEFAULT, fresh=True)
    assert far.number == 2
    assert far.log == [OWN]
    boots.give_back()
    assert far.number == 2


def test_one_that_somebody_else_rebooted_is_booted_anew(far):
    boots = boots_of(far, SIXONE)
    boots.boot(SIXONE, fresh=False)
    far.number, far.kernel = 7, OWN
    boots.boot(SIXONE, fresh=False)
    assert far.kernel == OLD


def test_a_machine_that_falls_back_is_told_with_the_kernel_that_it_runs(far):
    far.falls_back = True
    boots = boots_of(far, SIXONE)
    with pytest.raises(BootFailedError, match=r"was told to boot 6\.1\.0-44 and came up with 6\.12\.48") as caught:
        boots.boot(SIXONE, fresh=True)
    # as the level asks for it, so that a search can skip it
    assert caught.value.asked == SIXONE.text


def test_each_boot_of_a_study_is_told_from_the_others_by_its_words(far):
    boots = boots_of(far, SIXONE, BARE, DEFAULT)
    read = boot_change(boots._boots[DEFAULT]).read
    assert "mitigations=off" in read.arguments


def test_a_default_line_that_has_the_words_of_a_boot_is_refused_before_anything_is_booted(far, monkeypatch):
    monkeypatch.setattr(room, "observe_menu", lambda *_: replace(MENU, line="root=/dev/vda mitigations=off"))
    with pytest.raises(HostNotFitError, match="already has mitigations=off"):
        boots_of(far, DEFAULT, BARE)
    assert far.log == []


def test_one_that_a_killed_pgstrata_left_in_another_kernel_is_brought_home_first(far):
    far.kernel = OLD
    owner = SimpleNamespace(study="s")
    far.left = (SimpleNamespace(what=BOOTED, value=OLD, owner=owner),)
    boots_of(far, SIXONE)
    assert far.log == [OWN]
    assert far.kernel == OWN


def test_one_that_another_study_left_so_is_not_touched(far):
    far.left = (SimpleNamespace(what=BOOTED, value=OLD, owner=SimpleNamespace(study="t")),)
    boots_of(far, SIXONE)
    assert far.log == []


def test_a_default_kernel_that_has_changed_meanwhile_is_not_measured_as_the_one_of_before(far):
    boots = boots_of(far, DEFAULT, SIXONE)
    boots.boot(SIXONE, fresh=True)
    far.own = "6.12.50"
    with pytest.raises(BootFailedError, match=r"was told to boot 6\.12\.48 and came up with 6\.12\.50") as caught:
        boots.boot(DEFAULT, fresh=True)
    assert "name the kernels" in caught.value.remedy
    # no level is at fault, so no search skips one
    assert caught.value.asked == ""


def refused(far, monkeypatch, said):
    """What is told where the boot loader ends with an error."""

    class Ledger:
        def change(self, change):
            raise LevelNotTakenError(f"{change.what} cannot be set", details=(said,), remedy="choose another level")

    monkeypatch.setattr(room, "make_ledger", lambda *_: Ledger())
    with pytest.raises(HostNotFitError) as caught:
        boots_of(far, SIXONE).boot(SIXONE, fresh=True)
    assert far.number == 1
    return caught.value


def test_a_full_boot_is_told_with_what_to_free(far, monkeypatch):
    said = "grub-editenv: error: cannot write to `/boot/grub/grubenv': No space left on device."
    error = refused(far, monkeypatch, said)
    assert error.what == f"grub-reboot could not prepare the boot of {OLD}: a disk is full there"
    assert (error.where, error.details) == ("ssh:db1", (said,))
    assert "df -h /boot" in error.remedy


def test_a_boot_loader_that_fails_is_told_with_its_last_words(far, monkeypatch):
    error = refused(far, monkeypatch, "grub-reboot: no such entry")
    assert error.what == f"grub-reboot could not prepare the boot of {OLD}"
    assert "the machine was not rebooted" in error.remedy
