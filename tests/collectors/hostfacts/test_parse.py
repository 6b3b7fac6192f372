"""Facts of a host on captures: what the sampler kept of real machines, shortened."""

import json
from pathlib import Path

import pytest

from pgstrata.collectors.hostfacts.parse import find_shared, parse_host_facts
from pgstrata.model.shared import SharedResources

CAPTURES = Path(__file__).parents[2] / "captures" / "hostfacts"
CASES = sorted(path.parent for path in CAPTURES.glob("*/expected.json"))


def kept(case):
    return {path.name: path.read_bytes() for path in case.glob("host.*.txt")}


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_every_capture_gives_the_expected_facts(case):
    assert parse_host_facts(kept(case)).facts == json.loads((case / "expected.json").read_text())


def test_a_machine_that_is_emulated_by_software_says_so_whatever_cpu_it_pretends_to_have():
    for name in ("qemu-tcg-max", "qemu-tcg-qemu64", "qemu-tcg-haswell"):
        facts = parse_host_facts(kept(CAPTURES / name)).facts
        assert facts["host.emulation"] == "QEMU without hardware virtualisation", name


def test_without_systemd_cpu_models_of_qemu_are_known_all_the_same():
    for name, emulated in (("qemu-tcg-max", True), ("qemu-tcg-qemu64", True), ("firecracker", False)):
        files = {file: content for file, content in kept(CAPTURES / name).items() if "virtualisation" not in file}
        facts = parse_host_facts(files).facts
        assert ("host.emulation" in facts) is emulated, name
        assert facts["host.virtual"] == "hypervisor"


def test_qemus_default_cpu_on_hardware_is_not_emulated():
    files = kept(CAPTURES / "qemu-tcg-qemu64")
    files["host.system.txt"] = files["host.system.txt"].replace(
        b"available_clocksource\n", b"available_clocksource\nkvm-clock "
    )
    files["host.virtualisation.txt"] = b"kvm\n"
    assert "host.emulation" not in parse_host_facts(files).facts


def test_a_virtual_machine_that_hides_its_hypervisor_is_not_called_emulated():
    files = kept(CAPTURES / "qemu-tcg-haswell")
    files["host.cpu.txt"] = files["host.cpu.txt"].replace(b" tsc ", b" tsc tsc_deadline_timer ")
    assert "host.emulation" not in parse_host_facts(files).facts


BOOT, OTHER = (b"2f6a8ac9-6e0c-4ac4-b0f2-3b5b4fd9f0a%d\n" % number for number in (1, 2))
SPACE, INNER = b"pid:[4026531836]\n", b"pid:[4026532441]\n"


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        (BOOT + SPACE, BOOT + SPACE, SharedResources.PROCESSES),
        (BOOT + SPACE, BOOT + INNER, SharedResources.KERNEL),
        (BOOT, BOOT, SharedResources.KERNEL),
        (BOOT + SPACE, OTHER + SPACE, SharedResources.NOTHING),
        (BOOT + SPACE, b"", SharedResources.NOTHING),
        (b"", b"", SharedResources.NOTHING),
    ],
)
def test_what_two_hosts_share_is_known_by_their_kernels(one, other, shared):
    assert find_shared({"host.kernel.txt": one}, {"host.kernel.txt": other}) is shared
