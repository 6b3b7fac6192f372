"""Which Debian package brings a program, so that a missing one can be named with its remedy."""

from collections.abc import Mapping
from typing import Final

_BY_PACKAGE: Final[Mapping[str, str]] = {
    "bash": "bash",
    "bc": "bc",
    "binutils": "ld nm objdump readelf strip",
    "bison": "bison",
    "btrfs-progs": "mkfs.btrfs",
    "busybox-static": "/bin/busybox",
    "bzip2": "bunzip2 bzip2",
    "clang": "clang",
    "coreutils": (
        "base64 cat chmod chown cp cut date dd df du env false head id install ln ls md5sum mkdir mktemp mv nproc "
        "readlink realpath rm rmdir sha256sum sleep sort stat stdbuf sync tail tee timeout touch tr true truncate "
        "uname wc whoami"
    ),
    "curl": "curl",
    "dash": "dash sh",
    "dpkg": "dpkg",
    "e2fsprogs": "chattr lsattr mke2fs mkfs.ext4 resize2fs tune2fs",
    "fakeroot": "fakeroot",
    "findutils": "find xargs",
    "flex": "flex",
    "gcc": "gcc",
    "git": "git",
    "gzip": "gunzip gzip",
    "iproute2": "ip ss tc",
    "kmod": "depmod lsmod modprobe",
    "linux-perf": "perf",
    "make": "make",
    "maven": "mvn",
    "mawk": "awk",
    "meson": "meson",
    "mmdebstrap": "mmdebstrap",
    "mount": "losetup mount swapoff swapon umount",
    "ninja-build": "ninja",
    "numactl": "numactl numastat",
    "openssh-client": "scp ssh ssh-keygen",
    "patch": "patch",
    "perl": "perl",
    "procps": "free pgrep pidof ps sysctl top uptime vmstat",
    "qemu-system-x86": "qemu-system-x86_64",
    "sed": "sed",
    "sysbench": "sysbench",
    "sysstat": "iostat mpstat pidstat sar",
    "tar": "tar",
    "uidmap": "newgidmap newuidmap",
    "util-linux": (
        "blkid blockdev chrt dmesg fallocate findmnt flock fstrim ionice lsblk lscpu lsns mountpoint nsenter prlimit "
        "renice setarch setpriv setsid taskset unshare"
    ),
    "xfsprogs": "mkfs.xfs xfs_io",
    "xz-utils": "unxz xz",
    "zstd": "zstd",
}

PACKAGES: Final[Mapping[str, str]] = {
    program: package for package, programs in _BY_PACKAGE.items() for program in programs.split()
}
"""Debian package by program."""


def render_remedy(program: str) -> str:
    """What to do about a missing program; a path is not something that a package would bring."""
    if "/" in program:
        return "check the path of the program"
    if package := PACKAGES.get(program):
        return f"install the package {package} (apt-get install {package})"
    return f"install {program}, or add its folder to PATH"
