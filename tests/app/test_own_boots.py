"""The boots of this machine: each visit has one of its own, and nothing is rebooted for ever."""

from types import SimpleNamespace

import pytest

from pgstrata.app import own_boots as room
from pgstrata.app.own_boots import OwnBoots
from pgstrata.boots.menu import BootMenu, InstalledKernel
from pgstrata.errors import BootFailedError, HostNotFitError, RebootError
from pgstrata.model.boot import Boot
from pgstrata.system.boots import OTHERWISE, BootWay

OWN, OLD = "6.12.48", "6.1.0-44"
DEFAULT, SIXONE = Boot(), Boot(kernel="6.1")


class World:
    """A machine, its ledger and a study that outlive each pgstrata."""

    def __init__(self, monkeypatch, line="root=/dev/vda quiet"):
        self.kernel, self.boot_id, self.entries, self.kept, self.runs = OWN, 1, (), {}, []
        kernels = tuple(InstalledKernel(release=each, image=f"/boot/vmlinuz-{each}") for each in (OLD, OWN))
        entries = {BootWay.GRUB: {OLD: "old", OWN: "own"}}
        monkeypatch.setattr(
            room, "observe_menu",
            lambda *_: BootMenu(running=self.kernel, line=line, kernels=kernels, entries=entries, kexec=True),
        )  # fmt: skip
        monkeypatch.setattr(room, "observe_boot", lambda _: f"boot-{self.boot_id}")
        monkeypatch.setattr(room, "boot_entries", lambda _: self.entries)
        monkeypatch.setattr(room, "read_state", lambda _, __, read: self.read(read.arguments))

    def read(self, arguments):
        return self.kernel if self.kernel == " ".join(arguments[:2]).strip() else OTHERWISE

    def begin(self, *boots):
        """A new pgstrata."""
        host = SimpleNamespace(run=lambda *_, **__: None)
        opened = SimpleNamespace(transport=host, site=SimpleNamespace(privilege=()))
        hosts = SimpleNamespace(next_boot=None, goes_home=False)
        store = SimpleNamespace(
            fingerprint=self.kept.get, keep_fingerprint=self.kept.__setitem__, committed=lambda: self.runs
        )
        made = OwnBoots(hosts=_Hosts(hosts, opened), store=store)
        made.require(boots or (DEFAULT, SIXONE))
        return made

    def reboot(self, wanted=None):
        self.boot_id += 1
        self.kernel = OWN if wanted is None else wanted.text
        if wanted is not None and wanted.way is not BootWay.DEFAULT:
            self.entries = (SimpleNamespace(value=wanted.text),)


class _Hosts:
    def __init__(self, state, opened):
        self.__dict__.update(vars(state))
        self._opened = opened

    def __getitem__(self, spec):
        return self._opened


@pytest.fixture
def world(monkeypatch):
    return World(monkeypatch)


def asked(boots, boot):
    with pytest.raises(RebootError):
        boots.boot(boot, fresh=True)
    return boots.hosts.next_boot


def test_each_visit_has_a_boot_that_no_other_one_has_used(world):
    world.reboot(asked(world.begin(), SIXONE))
    boots = world.begin()
    boots.boot(SIXONE, fresh=True)
    asked(boots, SIXONE)
    # the boot in which it was interrupted has been used, too
    assert asked(world.begin(), SIXONE).text == OLD


def test_a_reboot_that_did_not_come_is_asked_for_again(world):
    asked(world.begin(), SIXONE)
    assert asked(world.begin(), SIXONE).text == OLD


def test_another_kernel_than_asked_for_is_told_once(world):
    asked(world.begin(), SIXONE)
    world.reboot()
    with pytest.raises(BootFailedError, match=f"told to boot {OLD} and came up with {OWN}"):
        world.begin()
    assert asked(world.begin(), SIXONE).text == OLD


def test_a_default_kernel_that_has_changed_is_told_with_the_one_of_before(world):
    asked(world.begin(), DEFAULT)
    world.reboot()
    world.kernel = "6.12.50"
    with pytest.raises(BootFailedError) as caught:
        world.begin()
    assert OWN in caught.value.remedy


def test_a_kernel_that_crashes_in_each_visit_is_given_up(world):
    for _ in range(3):
        world.reboot(asked(world.begin(), SIXONE))
        world.begin().boot(SIXONE, fresh=True)
    world.reboot(asked(world.begin(), SIXONE))
    with pytest.raises(BootFailedError, match="before a run was finished"):
        world.begin().boot(SIXONE, fresh=True)
    # the next command tries it again, and a run that is finished ends the count
    world.reboot(asked(world.begin(), SIXONE))
    world.begin().boot(SIXONE, fresh=True)
    world.runs.append("run")
    for _ in range(3):
        world.reboot(asked(world.begin(), SIXONE))
        world.begin().boot(SIXONE, fresh=True)


def test_it_goes_home_once(world):
    world.reboot(asked(world.begin(), SIXONE))
    boots = world.begin()
    boots.give_back()
    assert boots.hosts.goes_home
    # its default entry is that of the other kernel now
    world.boot_id += 1
    again = world.begin()
    with pytest.raises(BootFailedError, match="runs the same kernel again"):
        again.give_back()
    assert not again.hosts.goes_home


def test_words_that_the_default_line_has_are_refused(monkeypatch):
    world = World(monkeypatch, line="root=/dev/vda mitigations=off")
    with pytest.raises(HostNotFitError, match="already has mitigations=off"):
        world.begin(DEFAULT, Boot(options=("mitigations=off",)))
