"""Lines of /proc/self/mountinfo, as kernels and their file systems write them."""

from __future__ import annotations

import pytest

from pgstrata.errors import ParseError
from pgstrata.model.mounts import parse_mounts

# Of Windows Subsystem for Linux, whose 9p writes blanks into its options.
WSL = (
    r"78 69 0:60 / /mnt/c rw,noatime - 9p C:\134 rw,dirsync,aname=drvfs;path=C:\;uid=1000;gid=1000;symlinkroot=/mnt/,"
    "mmap,access=client,msize=65536,trans=fd,rfd=5,wfd=5 with blanks\n"
)
SHARED = "30 29 8:1 / / rw,relatime shared:1 master:2 - ext4 /dev/sda1 rw,errors=remount-ro\n"


def test_options_may_hold_blanks():
    (mount,) = parse_mounts(WSL)
    assert (mount.path, mount.kind) == ("/mnt/c", "9p")


def test_optional_fields_are_passed_over():
    (mount,) = parse_mounts(SHARED)
    assert (mount.path, mount.kind) == ("/", "ext4")


@pytest.mark.parametrize("mark", ["\xa0", "\x0c", "\u2028", "\x85"])
def test_a_path_may_hold_what_other_readers_take_for_the_end_of_a_line_or_a_blank(mark):
    (first, second) = parse_mounts(f"31 30 0:5 / /data{mark}here rw - tmpfs tmpfs rw\n" + SHARED)
    assert (first.path, second.path) == (f"/data{mark}here", "/")


def test_another_shape_is_quoted():
    with pytest.raises(ParseError, match="'nothing of the kind'"):
        list(parse_mounts("nothing of the kind\n"))
