"""A real guest, booted by QEMU: `make test-vm`, a part of `make soak`, because emulated boots are slow."""

import shutil
from collections.abc import Iterator
from contextlib import closing

import pytest

from pgstrata.app.machine import Machine, open_machine
from pgstrata.app.site import make_socket_folder
from pgstrata.app.vms import build_image, opened_vm
from pgstrata.boots.observe import find_unknown
from pgstrata.errors import BootFailedError, HostNotFitError
from pgstrata.hosts.ssh import open_ssh
from pgstrata.model.boot import Boot
from pgstrata.ports.host import Command
from pgstrata.vms.image import find_image
from pgstrata.vms.machine import VirtualMachine

_TOOLS = ("mmdebstrap", "mke2fs", "qemu-system-x86_64", "ssh", "ssh-keygen")
_MISSING = [tool for tool in _TOOLS if shutil.which(tool) is None]
pytestmark = [
    pytest.mark.soak("vm-boots"),
    pytest.mark.timeout(1800),
    pytest.mark.skipif(bool(_MISSING), reason=f"missing: {', '.join(_MISSING)}"),
]
IMAGE = "pgstrata-test"


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    with open_machine(print) as opened:
        try:
            find_image(opened.places.cache, IMAGE)
        except HostNotFitError:
            build_image(IMAGE, suite="bookworm", kernels=("6.1", "6.12"), note=print)
        yield opened


@pytest.fixture
def vm(machine: Machine) -> Iterator[VirtualMachine]:
    with opened_vm(machine, IMAGE, "test", print) as made:
        yield made
        made.remove()


def say(vm: VirtualMachine, text: str) -> str:
    with make_socket_folder() as run, closing(open_ssh(vm.destination, run=run, config=vm.ssh_config)) as guest:
        return guest.run(Command(argv=("sh", "-c", text))).text.strip()


def test_data_outlive_a_boot_into_another_kernel_and_the_root_file_system_is_new(vm: VirtualMachine) -> None:
    vm.start(Boot(kernel="6.12", options=("mitigations=off",), cpus=1))
    seen = say(vm, "touch /srv/pgstrata/kept /root/forgotten; uname -r; nproc; cat /proc/cmdline")
    assert seen.startswith("6.12.")
    assert seen.splitlines()[1] == "1"
    assert seen.endswith("mitigations=off")
    vm.start(Boot(kernel="6.1"))
    assert say(vm, "uname -r").startswith("6.1.")
    assert say(vm, "ls /srv/pgstrata/kept; ls /root/forgotten || echo new").splitlines() == [
        "/srv/pgstrata/kept",
        "new",
    ]


def test_a_kernel_that_panics_is_told_with_its_console(vm: VirtualMachine) -> None:
    with pytest.raises(BootFailedError) as failed:
        vm.start(Boot(kernel="6.1", options=("rdinit=/nowhere", "root=/dev/nothing")))
    assert "panic" in str(failed.value)


def test_a_word_that_its_kernel_does_not_know_is_found_in_its_messages(vm: VirtualMachine) -> None:
    words = ("mitigatons=off", "mitigations=off", "nospectre_v2")
    vm.start(Boot(kernel="6.1", options=words))
    with make_socket_folder() as run, closing(open_ssh(vm.destination, run=run, config=vm.ssh_config)) as guest:
        assert find_unknown(guest, (), words) == ("mitigatons=off",)


def test_stopping_twice_does_no_harm(vm: VirtualMachine) -> None:
    vm.stop()
    vm.start(Boot(kernel="6.1"))
    assert vm.up
    vm.stop()
    vm.stop()
    assert not vm.up
