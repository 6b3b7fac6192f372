"""Options of mkfs and mount: what reaches beyond pgstrata's own file system is refused."""

import pytest

from pgstrata.errors import LevelNotTakenError, UsageError
from pgstrata.layers.storage.sites import (
    MB,
    FileSystem,
    check_mount_options,
    file_system_label,
    image_size,
    mkfs_words,
    mount_options,
)

EXT4, XFS, BTRFS = FileSystem.EXT4, FileSystem.XFS, FileSystem.BTRFS
NO_RIGHTS = ("nosuid", "nodev")


def test_nothing_is_discarded_and_nothing_left_for_later():
    assert "-K" in mkfs_words(XFS, "", "l")
    assert "-K" in mkfs_words(BTRFS, "", "l")
    words = mkfs_words(EXT4, "", "l")
    assert words[words.index("-E") + 1] == "lazy_itable_init=0,lazy_journal_init=0,nodiscard"


def test_options_come_after_those_that_are_always_given():
    assert mkfs_words(XFS, "-m reflink=0 -d 'su=64k,sw=2'", "l") == (
        "mkfs.xfs",
        "-q",
        "-f",
        "-K",
        "-L",
        "l",
        "-m",
        "reflink=0",
        "-d",
        "su=64k,sw=2",
    )


@pytest.mark.parametrize("asked", ["-E stride=4 -m 0", "-m 0 -Estride=4"])
def test_extended_options_of_ext4_are_joined_because_only_the_last_would_count(asked):
    words = mkfs_words(EXT4, asked, "l")
    assert words.count("-E") == 1
    assert words[words.index("-E") + 1].endswith("nodiscard,stride=4")
    assert words[-2:] == ("-m", "0")


@pytest.mark.parametrize(
    "asked",
    ["/dev/sda", "-J device=UUID=1", "-l logdev=/dev/sdb", "-d name=x", "-L mine", "--label mine", "-J device=LABEL=j",
     "100000", "-d 'unclosed", "-d file=1", "-F", "-qF", "-qLx", "-qL mine", "--lab mine", "-d single swap.img", "-", "--",
     "--nodesize 4096", "-m 0 100000", "-m"],
)  # fmt: skip
def test_options_that_name_another_device_file_or_label_are_refused(asked):
    for kind in FileSystem:
        with pytest.raises(UsageError, match=r"storage\.mkfs"):
            mkfs_words(kind, asked, "l")


def test_mount_options_are_taken_one_by_one():
    assert mount_options(" noatime, commit=60,", image=False) == ("noatime", "commit=60", *NO_RIGHTS)
    assert mount_options("discard", image=False) == ("discard", *NO_RIGHTS)
    assert mount_options("", image=False) == NO_RIGHTS


def test_on_an_image_nothing_is_discarded_unless_the_kernel_says_so():
    assert mount_options("noatime") == ("nodiscard", "noatime", *NO_RIGHTS)
    with pytest.raises(LevelNotTakenError, match="nodiscard"):
        check_mount_options(mount_options(""), ["rw", "discard=async"], where="here")


@pytest.mark.parametrize(
    ("kind", "asked", "words"),
    [(BTRFS, "-d single -m dup", ["-d", "single", "-m", "dup"]), (BTRFS, "--nodesize=4096", ["--nodesize=4096"]),
     (XFS, "-i size=1024 -mcrc=0", ["-i", "size=1024", "-m", "crc=0"]),
     (EXT4, "-jm0 -O ^has_journal,LARGE -T News", ["-j", "-m", "0", "-O", "^has_journal,LARGE", "-T", "News"])],
)  # fmt: skip
def test_a_value_is_no_option_whatever_letters_are_in_it(kind, asked, words):
    assert mkfs_words(kind, asked, "l")[-len(words) :] == tuple(words)


def test_an_undo_file_is_refused():
    with pytest.raises(UsageError, match="write a file"):
        mkfs_words(EXT4, "-z undo", "l")


@pytest.mark.parametrize(
    "asked",
    [
        "discard",
        "noatime,bind",
        "remount",
        "ro",
        "loop",
        "logdev=/dev/sda",
        "X-mount.mkdir",
        "device=x",
        "suid",
        "defaults",
    ],
)
def test_mount_options_that_are_not_for_a_file_system_of_its_own_are_refused(asked):
    with pytest.raises(UsageError, match=r"storage\.mount"):
        mount_options(asked)


@pytest.mark.parametrize(
    ("asked", "seen"),
    [("noatime", "rw,relatime"), ("data=journal", "rw,data=ordered"), ("nobarrier", "rw,barrier"),
     ("compress=zstd", "rw,compress=lzo:1"), ("compress=zstd:1", "rw,compress=zstd:3")],
)  # fmt: skip
def test_a_mount_option_that_is_seen_to_be_different_did_not_take(asked, seen):
    with pytest.raises(LevelNotTakenError, match=asked):
        check_mount_options([asked], seen.split(","), where="here")


@pytest.mark.parametrize(
    ("asked", "seen"),
    [("noatime", "rw,noatime"), ("compress=zstd", "rw,compress=zstd:3"), ("commit=5", "rw"), ("defaults", "rw")],
)
def test_what_the_kernel_says_otherwise_or_not_at_all_is_no_failure(asked, seen):
    check_mount_options([asked], seen.split(","), where="here")


def test_the_size_follows_the_data_and_is_the_same_for_all_file_systems():
    sizes = {image_size(kind, "", 1000 * MB) for kind in FileSystem}
    assert sizes == {1100 * MB}
    assert {image_size(kind, "", 1) for kind in FileSystem} == {512 * MB}
    assert image_size(XFS, "", 0) > 4000 * MB


def test_a_size_that_is_asked_for_is_used_unless_the_file_system_cannot_be_so_small():
    assert image_size(XFS, str(300 * MB + 5), 1000 * MB) == 300 * MB
    with pytest.raises(UsageError, match="xfs needs at least 300 MB"):
        image_size(XFS, str(299 * MB), 0)


def test_a_label_fits_the_shortest_that_a_file_system_allows():
    assert file_system_label("0123456789ab") == "pgstrata-012"
