"""What a virtual machine remembers of its host, and boots that come to nothing, without QEMU."""

import json
import os
from pathlib import Path

import pytest

from fake_clock import FakeClock
from pgstrata.errors import BootFailedError, HostFileError, HostNotFitError
from pgstrata.model.boot import Boot
from pgstrata.ports.host import Completed, StopSignal
from pgstrata.servers.places import Places
from pgstrata.vms import machine as machines
from pgstrata.vms.machine import VirtualMachine
from pgstrata.vms.qemu import Acceleration, last_lines


class HostWithoutKvm:
    user = "root"

    def read(self, path):
        return Path(path).read_bytes()

    def run(self, _, **__):
        return Completed(code=1, stdout=b"", stderr=b"")


def test_what_is_remembered_is_read_as_a_file_and_otherwise_found_out_anew(tmp_path):
    image = tmp_path / "vms" / "deb12"
    image.mkdir(parents=True)
    (image / "image.json").write_text(json.dumps({"suite": "bookworm", "kernels": ["6.1.0-1"], "oldest": []}))
    places = Places(cache=str(tmp_path), state=str(tmp_path), data="", storage="", run="", memory="")
    host = HostWithoutKvm()
    machine = VirtualMachine("deb12", places=places, here=host, host=host, clock=None, data="", tell=lambda _: None)
    remembered = tmp_path / "vms-acceleration"
    os.mkfifo(remembered)
    assert machine.acceleration() is Acceleration.EMULATION
    assert remembered.read_text().endswith(" root tcg\n")


# ------------------------------------------------------------------------------------- boots that come to nothing

PANIC = (Path(__file__).parents[1] / "captures" / "kernels" / "panic.txt").read_text()
OLD = Boot(kernel="6.1", options=("mitigations=off",))


class SeemingQemu:
    """A process that runs until it is ended."""

    def __init__(self, code=None):
        self.code, self.signals = code, []

    def poll(self):
        return self.code

    def wait(self, _):
        return self.code

    def signal(self, signal, **_):
        self.signals.append(signal)
        self.code = 0


class HostOfGuests(HostWithoutKvm):
    """Starts no QEMU; `files` are what one would have written."""

    def __init__(self, qemu, files):
        self.qemu, self.files = qemu, files

    def read(self, path):
        for name, text in self.files.items():
            if path.endswith(name):
                return text.encode()
        if path.startswith("/proc/"):
            return super().read(path)
        raise HostFileError("there is no such file", where=path)

    def exists(self, _):
        return True

    def remove_tree(self, _):
        """What an earlier boot left."""

    def spawn(self, *_, **__):
        return self.qemu


class Silence:
    """Nobody greets."""

    def __init__(self, _):
        pass

    def comes(self, _):
        return False

    def close(self):
        """Nothing is open."""


class Greeted(Silence):
    def comes(self, _):
        return True


@pytest.fixture
def guest(tmp_path, monkeypatch):
    """Makes a machine that has not been started; its greeting can be replaced."""
    image = tmp_path / "vms" / "deb12"
    image.mkdir(parents=True)
    facts = {"suite": "bookworm", "kernels": ["6.1.0-1", "2.6.39"], "oldest": [3, 2, 0]}
    (image / "image.json").write_text(json.dumps(facts))
    (image / "host.pub").write_text("ssh-ed25519 AAAA pgstrata")
    places = Places(cache=str(tmp_path), state=str(tmp_path), data="", storage="", run="", memory="")

    def make(*, qemu=None, greeting=Silence, **written):
        monkeypatch.setattr(machines, "Greeting", greeting)
        names = {"console": ".console", "said": ".console.qemu", "memory": "/proc/meminfo"}
        host = HostOfGuests(qemu or SeemingQemu(), {names[key]: text for key, text in written.items()})
        data = str(tmp_path / "deb12-0123456789ab.img")
        clock = FakeClock()
        return VirtualMachine("deb12", places=places, here=host, host=host, clock=clock, data=data, tell=lambda _: None)

    return make


def test_a_kernel_that_panics_is_told_with_its_last_lines_and_switched_off(guest):
    qemu = SeemingQemu()
    vm = guest(qemu=qemu, console=PANIC)
    with pytest.raises(
        BootFailedError, match=r"deb12 does not come up with 6\.1 mitigations=off: Kernel panic"
    ) as caught:
        vm.start(OLD)
    # a search skips it
    assert caught.value.asked == OLD.text
    assert caught.value.details == last_lines(PANIC)
    assert caught.value.where == vm.console
    assert qemu.signals == [StopSignal.TERM]
    assert not vm.up


def test_an_end_of_qemu_is_not_the_fault_of_the_kernel(guest):
    vm = guest(qemu=SeemingQemu(code=1), said="qemu: cannot set up guest memory 'pc.ram'\n", console="")
    with pytest.raises(BootFailedError, match="QEMU ended before the machine was up") as caught:
        vm.start(OLD)
    assert caught.value.asked == ""
    assert caught.value.details == ("qemu: cannot set up guest memory 'pc.ram'",)


def test_a_guest_that_never_answers_is_given_up(guest):
    vm = guest(console="Run /init as init process\n")
    with pytest.raises(BootFailedError, match="its sshd did not answer within 240 s"):
        vm.start(OLD)
    assert not vm.up


def test_a_kernel_that_panics_under_load_is_told_to_whoever_cannot_reach_it(guest):
    vm = guest(greeting=Greeted, console="Run /init as init process\n")
    vm.start(OLD)
    assert (vm.up, vm.boots) == (True, 1)
    vm.require_alive()
    vm._host.files[".console"] = PANIC
    with pytest.raises(BootFailedError, match=r"crashed with 6\.1 mitigations=off: Kernel panic") as caught:
        vm.require_alive()
    assert caught.value.asked == OLD.text


def test_a_machine_larger_than_this_one_is_refused_before_it_is_started(guest):
    vm = guest(memory="MemTotal:        4194304 kB\nMemFree: 1 kB\n")
    vm.check(Boot(memory=4 << 30))
    with pytest.raises(HostNotFitError, match=r"is to have 8 GB of memory, but this machine has only 4 GB"):
        vm.check(Boot(memory=8 << 30))


def test_a_kernel_older_than_the_image_accepts_is_refused_by_name(guest):
    with pytest.raises(HostNotFitError, match=r"2\.6\.39 is older than 3\.2\.0"):
        guest().check(Boot(kernel="2.6"))
