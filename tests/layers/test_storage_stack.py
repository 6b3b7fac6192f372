"""What a script saw below a folder becomes mounts and devices; captures are of real mounts, md and dm are written by hand."""

from pathlib import Path

import pytest

from pgstrata.errors import ParseError
from pgstrata.layers.storage.stack import MountedFileSystem, parse_observed

CAPTURES = Path(__file__).parents[1] / "captures" / "storage" / "util-linux-2.38"
DISK = "queue/scheduler=[mq-deadline] none\nqueue/read_ahead_kb=128\nqueue/write_cache=write through\n"
# sysfs-block(5) of the kernel's documentation: dm and md have no scheduler of their own
MIRROR = f"""== place
inside=/srv/a b
real=/srv/a b
== mount 0
TARGET="/srv/a\\x20b" SOURCE="/dev/mapper/vg-data" FSTYPE="ext4" OPTIONS="rw,noatime"
== device 0
name=dm-0
depth=0
queue/scheduler=none
queue/read_ahead_kb=4096
queue/logical_block_size=512
dm/name=vg-data
dm/uuid=LVM-Ab3dE
== device 0
name=md0
depth=1
queue/scheduler=none
queue/logical_block_size=4096
md/level=raid1
== device 0
name=sda1
depth=2
disk=sda
{DISK}device/model=MODEL  7
== device 0
name=sdb1
depth=2
disk=sdb
{DISK}"""


def stack_of(name):
    return parse_observed((CAPTURES / f"{name}.txt").read_text()).stack


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs"])
def test_a_file_system_on_a_loop_device_is_followed_down_to_the_disk(kind):
    stack = stack_of(kind)
    assert stack.mount.type == kind
    assert "noatime" in stack.mount.options
    assert stack.render() == f"{kind} on loop (direct I/O, write back) on ext4 on vda (write back)"
    (device,) = stack.devices
    assert (device.name, device.scheduler, device.schedulers) == (
        "loop0",
        "none",
        ("none", "mq-deadline", "kyber", "bfq"),
    )
    assert stack.scheduled == (device,)
    assert stack.below.devices[0].scheduler == "mq-deadline"
    assert stack.below.mount.target == "/"


def test_read_ahead_of_btrfs_is_its_own():
    assert stack_of("xfs").devices[0].read_ahead == 2560 * 1024
    assert stack_of("xfs").devices[0].read_ahead_file == "/sys/block/loop0/queue/read_ahead_kb"
    (device,) = stack_of("btrfs").devices
    assert device.read_ahead == 4096 * 1024
    assert device.read_ahead_file.startswith("/sys/fs/btrfs/")


def test_memory_has_no_device_and_the_later_of_two_mounts_counts():
    stack = stack_of("tmpfs")
    assert (stack.render(), stack.devices, stack.below, stack.scheduled) == ("tmpfs", (), None, ())


def test_mirrors_and_volumes_are_followed_to_the_disks_which_have_the_schedulers():
    seen = parse_observed(MIRROR)
    stack = seen.stack
    assert seen.facts["inside"] == stack.mount.target == "/srv/a b"
    assert stack.render() == (
        "ext4 on dm-0 (dm LVM vg-data) on md0 (md raid1) on sda1 (MODEL 7, write through) on sdb1 (write through)"
    )
    assert [device.scheduler_file for device in stack.scheduled] == [
        "/sys/block/sda/queue/scheduler",
        "/sys/block/sdb/queue/scheduler",
    ]
    assert stack.logical_block == 4096


def test_names_that_a_reboot_may_swap_are_no_part_of_a_fingerprint():
    head, first, second = f"{MIRROR}device/model=OTHER\n".split("== device 0\nname=s")
    other = "== device 0\nname=s".join([head, second.replace("db", "da"), first.replace("da", "db")])
    swapped = parse_observed(other.replace("dm-0", "dm-3").replace("md0", "md127")).stack
    stack = parse_observed(f"{MIRROR}device/model=OTHER\n").stack
    assert stack.render(names=False) == swapped.render(names=False)
    assert stack.render() != swapped.render()
    assert stack.render(names=False) == (
        "ext4 on volume (dm LVM vg-data) on array (md raid1) on partition 1 (MODEL 7, write through) on "
        "partition 1 (OTHER, write through)"
    )


def test_a_fast_disk_is_known_by_its_model_and_what_it_says_of_its_write_cache():
    text = (
        '== mount 0\nTARGET="/srv" SOURCE="/dev/nvme0n1p2" FSTYPE="xfs" OPTIONS="rw"\n== device 0\nname=nvme0n1p2\n'
        "depth=0\ndisk=nvme0n1\nqueue/scheduler=[none] mq-deadline\nqueue/write_cache=write back\n"
        "queue/logical_block_size=512\ndevice/model=MODEL 990 1TB                      \n"
    )
    stack = parse_observed(text).stack
    assert stack.render() == "xfs on nvme0n1p2 (MODEL 990 1TB, write back)"
    assert stack.render(names=False) == "xfs on partition 2 (MODEL 990 1TB, write back)"
    assert stack.scheduled[0].scheduler_file == "/sys/block/nvme0n1/queue/scheduler"
    through = parse_observed(text.replace("write back", "write through")).stack
    assert through.render(names=False) != stack.render(names=False)


def test_the_place_of_an_overlay_is_no_part_of_a_fingerprint():
    options = ("rw", "lowerdir=/var/l1:/var/l2", "upperdir=/u", "workdir=/w", "redirect_dir=on", "lowerdir+=/x")
    mount = MountedFileSystem(target="/", source="overlay", type="overlay", options=options)
    assert mount.lasting_options == ("rw", "redirect_dir=on")


def test_a_check_names_all_that_is_missing():
    seen = parse_observed("== check\nfolder=/srv\ntaken=/srv/x\nfree=4096\nmissing=mkfs.xfs\nmissing=losetup\n")
    assert (seen.facts["taken"], seen.facts["free"], seen.missing) == ("/srv/x", "4096", ("mkfs.xfs", "losetup"))
    assert seen.stack is None


@pytest.mark.parametrize("text", ["folder=/srv\n", "== check\nno fact\n", '== mount 0\nTARGET="/" SOURCE="none"\n'])
def test_an_unknown_shape_is_refused_with_its_line(text):
    with pytest.raises(ParseError, match=r"expected|FSTYPE"):
        parse_observed(text)
