"""Which kernel is meant, the order of its modules, and the oldest that a C library accepts."""

import struct
from pathlib import Path

import pytest

from pgstrata.errors import HostNotFitError
from pgstrata.vms.kernels import (
    choose_kernel,
    choose_package,
    module_name,
    modules_in_order,
    oldest_kernel,
    require_new_enough,
)

CAPTURES = Path(__file__).parent.parent / "captures" / "kernels"
LISTING = """\
linux-image-6.1.0-9-cloud-amd64 - Linux 6.1 for x86-64 cloud (signed)
linux-image-6.1.0-56-cloud-amd64 - Linux 6.1 for x86-64 cloud (signed)
linux-image-6.1.0-56-cloud-amd64-dbg - Debug symbols for linux-image-6.1.0-56-cloud-amd64
linux-image-6.1.0-57-cloud-amd64-unsigned - Linux 6.1 for x86-64 cloud
linux-image-6.12-cloud-amd64 - Linux for x86-64 cloud (meta-package)
linux-image-6.12.117+deb12-cloud-amd64 - Linux 6.12 for x86-64 cloud (signed)
linux-image-amd64 - Linux for 64-bit PCs (meta-package)
"""


@pytest.mark.parametrize(
    ("asked", "package"),
    [
        ("6.1", "linux-image-6.1.0-56-cloud-amd64"),
        ("6.12", "linux-image-6.12.117+deb12-cloud-amd64"),
        ("6.1.0-9", "linux-image-6.1.0-9-cloud-amd64"),
        ("", "linux-image-6.12.117+deb12-cloud-amd64"),
    ],
)
def test_of_a_series_the_newest_package_is_taken(asked: str, package: str) -> None:
    assert choose_package(LISTING, asked) == package


def test_a_series_that_no_source_has_is_refused_with_those_that_are_there() -> None:
    with pytest.raises(HostNotFitError) as refused:
        choose_package(LISTING, "4.19")
    assert "6.1.0-56-cloud-amd64" in str(refused.value)
    with pytest.raises(HostNotFitError, match="sources have no kernel for virtual machines"):
        choose_package("", "")


def test_an_image_gives_the_newest_of_a_series_and_names_what_it_has() -> None:
    releases = ("6.1.0-56-cloud-amd64", "6.12.117+deb12-cloud-amd64")
    assert choose_kernel(releases, "6.1", where="image a") == releases[0]
    assert choose_kernel(releases, "", where="image a") == releases[1]
    assert choose_kernel(("6.12.0-rc1", "6.12.0"), "6.12", where="image a") == "6.12.0"
    with pytest.raises(HostNotFitError, match=r"no kernel 5\.10"):
        choose_kernel(releases, "5.10", where="image a")


@pytest.mark.parametrize("release", ["6.1.0-56-cloud-amd64", "6.12.117+deb12-cloud-amd64"])
def test_modules_of_a_real_kernel_come_after_what_they_need(release: str) -> None:
    dependencies = (CAPTURES / release / "modules.dep").read_text()
    builtin = (CAPTURES / release / "modules.builtin").read_text()
    order = modules_in_order(dependencies, builtin, where=release)
    names = [module_name(path) for path in order]
    assert {"virtio_blk", "virtio_net", "net_failover", "failover"} <= set(names)
    assert names.index("failover") < names.index("net_failover") < names.index("virtio_net")
    needs = {line.partition(":")[0]: line.partition(":")[2].split() for line in dependencies.splitlines()}
    for place, path in enumerate(order):
        assert set(needs[path]) <= set(order[:place])


def test_a_kernel_without_the_driver_of_the_disk_is_refused() -> None:
    builtin = "kernel/drivers/virtio/virtio_pci.ko\nkernel/drivers/net/virtio_net.ko\nkernel/fs/ext4/ext4.ko\n"
    with pytest.raises(HostNotFitError, match="lacks drivers without which a virtual machine cannot start: virtio_blk"):
        modules_in_order("", builtin, where="6.1")


def test_modules_that_need_each_other_do_not_go_round_for_ever() -> None:
    dependencies = "a/one.ko: a/two.ko\na/two.ko: a/one.ko\n"
    assert modules_in_order(dependencies, "", ("one",), where="6.1") == ("a/two.ko", "a/one.ko")


def test_a_c_library_says_the_oldest_kernel_that_it_accepts() -> None:
    note = struct.pack("<3I4s4I", 4, 16, 1, b"GNU\0", 0, 3, 2, 0)
    assert oldest_kernel(b"\x7fELF" + b"x" * 60 + note + b"rest") == (3, 2, 0)
    assert oldest_kernel(b"\x7fELF") is None
    assert oldest_kernel(note[:20]) is None


def test_a_kernel_older_than_the_c_library_accepts_is_refused_by_name() -> None:
    with pytest.raises(HostNotFitError, match=r"2\.6\.39 is older than 3\.2\.0"):
        require_new_enough("2.6.39", (3, 2, 0), where="image a")
    require_new_enough("3.2.81", (3, 2, 0), where="image a")
    require_new_enough("2.6.39", (), where="image a")
