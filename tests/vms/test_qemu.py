"""The command that runs a virtual machine, its first file system, and what its console says."""

from dataclasses import replace
from pathlib import Path

import pytest

from pgstrata.errors import HostNotFitError
from pgstrata.model.boot import Boot
from pgstrata.vms.initramfs import cpio, file_name
from pgstrata.vms.qemu import PROOF, Acceleration, Files, compose, find_panic, last_lines

CAPTURES = Path(__file__).parent.parent / "captures" / "kernels"
FILES = Files(kernel="/c/vmlinuz", initrd="/c/initrd", root="/c/root.img", data="/d/a,b.img", console="/d/c", port=2222)


def test_root_is_read_from_a_snapshot_and_data_stay_cached_as_asked() -> None:
    command = compose(Boot(memory=1 << 30, cpus=3, cache="writeback"), FILES, Acceleration.EMULATION)
    assert "file=/c/root.img,if=virtio,format=raw,snapshot=on" in command
    assert "file=/d/a,,b.img,if=virtio,format=raw,cache=writeback" in command
    assert command[command.index("-m") + 1] == "1024M"
    assert command[command.index("-smp") + 1] == "3"
    assert "q35,accel=tcg" in command


def test_a_guest_is_reached_from_this_machine_alone() -> None:
    network = next(word for word in compose(Boot(), FILES, Acceleration.KVM) if word.startswith("user,"))
    assert network == "user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:2222-10.0.2.15:22"


def test_each_port_for_servers_leads_to_the_same_port_of_the_guest() -> None:
    command = compose(Boot(), replace(FILES, ports=(15432, 15433)), Acceleration.KVM)
    network = next(word for word in command if word.startswith("user,"))
    assert network.endswith("hostfwd=tcp:127.0.0.1:15432-10.0.2.15:15432,hostfwd=tcp:127.0.0.1:15433-10.0.2.15:15433")


def test_words_of_a_boot_are_in_its_command_line() -> None:
    command = compose(Boot(options=("mitigations=off",)), FILES, Acceleration.EMULATION)
    assert command[command.index("-append") + 1].split()[-1] == "mitigations=off"


def test_a_proof_has_neither_disk_nor_network() -> None:
    command = compose(Boot(), Files(kernel="/k", initrd="/i", console="/c"), Acceleration.KVM)
    assert PROOF in command[command.index("-append") + 1].split()
    assert not {"-drive", "-netdev"} & set(command)


@pytest.mark.parametrize(
    ("boot", "what"),
    [
        (Boot(cache="fast"), "QEMU has no cache mode 'fast'"),
        (Boot(memory=1 << 20), "cannot start with so little"),
        (Boot(cpus=0), "cannot start with so little"),
    ],
)
def test_a_machine_that_cannot_be_is_refused(boot: Boot, what: str) -> None:
    with pytest.raises(HostNotFitError, match=what):
        compose(boot, FILES, Acceleration.KVM)


def test_a_panic_is_seen_on_a_console() -> None:
    console = (CAPTURES / "panic.txt").read_text()
    assert find_panic(console).startswith("Kernel panic - not syncing: ")
    assert any("Kernel panic" in line for line in last_lines(console, most=40))
    assert not find_panic("Linux version 6.1\nRun /init as init process\n")


def test_an_archive_has_its_entries_at_multiples_of_four_and_ends_with_its_trailer() -> None:
    archive = cpio({"init": (0o100755, b"abc")})
    assert archive.startswith(b"070701")
    assert archive.find(b"070701", 6) % 4 == 0
    assert b"TRAILER!!!" in archive[-16:]
    assert len(archive) % 4 == 0


def test_an_unpacked_module_has_no_word_of_its_compression() -> None:
    assert file_name("kernel/drivers/block/virtio_blk.ko.xz") == "virtio_blk.ko"
