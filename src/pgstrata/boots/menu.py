"""Pure: the kernels of a machine and the ways to start one of them once, parsed from files and output of that machine.

Sources: the menu as grub-mkconfig writes it (grub.cfg, its `menuentry` and `submenu` with `$menuentry_id_option`);
the Boot Loader Specification for `/boot/loader/entries/*.conf`; `bootctl list --json=short`, systemd 250 and later;
findmnt(8); the parameter `root` in kernel-parameters of Linux.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pgstrata.errors import HostNotFitError
from pgstrata.model.boot import Boot, find_release, grub_writes, release_key
from pgstrata.model.codec import parse_json
from pgstrata.system.boots import BootWay, NextBoot

_IMAGE: Final = re.compile(r"(?:vmlinuz|vmlinux|Image|kernel)-(?P<release>[0-9].*)")
_BLOCK: Final = re.compile(r"\s*(menuentry|submenu)\s.*\{\s*$")
_ID: Final = re.compile(r"(?:\$menuentry_id_option|--id[ =])\s*'([^']+)'|--id[ =](\S+)")
_LINUX: Final = re.compile(r"\s*linux(?:16|efi)?\s+(\S+)(.*)$")
_RESCUE: Final = re.compile(r"\b(single|recovery|rescue|emergency)\b")
# Words of a command line that a boot loader adds for itself.
_OF_THE_LOADER: Final = ("BOOT_IMAGE=", "initrd=")
_MOST_NAMED: Final = 8
# Names of a root file system that programs of an initrd look up; the kernel itself knows devices and PARTUUID.
_FOUND_BY_INITRD: Final = ("UUID=", "LABEL=", "ZFS=", "/dev/mapper/", "/dev/disk/")


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledKernel:
    """A kernel with the paths of its files; `initrd` is empty where it has none."""

    release: str
    image: str
    initrd: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BootMenu:
    """How a machine can be booted.

    `running` is the release that it runs, `line` its command line. `entries` are the boot loader's entries by release,
    for each way to choose one of them. `kexec` says whether a kernel can be started without a boot loader. `lasting`
    is where GRUB keeps the choice of an entry, if it cannot take it back at the boot: its entries are not used then,
    because a kernel that does not come up would be started again at each power cycle.
    """

    running: str
    line: str
    kernels: tuple[InstalledKernel, ...] = ()
    entries: Mapping[BootWay, Mapping[str, str]] = field(default_factory=dict)
    kexec: bool = False
    lasting: str = ""


def parse_menu(sections: Mapping[str, str]) -> BootMenu:
    """A menu from the sections of text that `observe.observe_menu` has read, by their names."""
    files = sections.get("files", "").split()
    programs = set(sections.get("programs", "").split())
    specified = {path: text for path, text in sections.items() if path.endswith(".conf")}
    entries: dict[BootWay, Mapping[str, str]] = {}
    if sections.get("bootctl", "").strip():
        entries[BootWay.SYSTEMD] = parse_bootctl(sections["bootctl"])
    grub = {**parse_specified(specified), **parse_grub(sections.get("grub", ""))}
    kept = " ".join(sections.get("grubenv", "").split())
    kind, _, source = kept.partition(" ")
    lasting = "" if grub_writes(kind, source) else kept
    for way in (BootWay.GRUB, BootWay.GRUB2):
        if grub and way in programs and not lasting:
            entries[way] = grub
            break
    return BootMenu(
        running=sections.get("running", "").strip(),
        line=sections.get("line", "").strip(),
        kernels=tuple(sorted(_kernels(files), key=lambda kernel: release_key(kernel.release))),
        entries={way: found for way, found in entries.items() if found},
        kexec="kexec" in programs and sections.get("kexec_disabled", "").strip() == "0",
        lasting=lasting,
    )


def _kernels(files: Sequence[str]) -> Iterator[InstalledKernel]:
    names = set(files)
    for path in files:
        found = _IMAGE.fullmatch(posixpath.basename(path))
        if found is None:
            continue
        release, folder = found["release"], posixpath.dirname(path)
        candidates = (
            f"initrd.img-{release}", f"initramfs-{release}.img", f"initrd-{release}", f"initrd-{release}.img"
        )  # fmt: skip
        initrd = next((f"{folder}/{name}" for name in candidates if f"{folder}/{name}" in names), "")
        yield InstalledKernel(release=release, image=path, initrd=initrd)


def parse_grub(text: str) -> Mapping[str, str]:
    """Entries of a grub.cfg as `grub-reboot` takes them (SUBMENU>ENTRY), by release; without rescue entries.

    If several have the same release, the first one in a submenu counts, because it names its release and stays the
    same when another kernel becomes the default. Without a submenu the first entry counts.
    """
    found: dict[str, str] = {}
    nested: set[str] = set()
    within: list[str | None] = []
    for line in text.splitlines():
        if _BLOCK.match(line):
            match = _ID.search(line)
            within.append((match[1] or match[2]) if match else None)
        elif line.rstrip().endswith("{"):
            within.append("")
        elif line.strip() == "}" and within:
            within.pop()
        elif (linux := _LINUX.match(line)) and (image := _IMAGE.fullmatch(posixpath.basename(linux[1]))):
            path = [each for each in within if each != ""]
            if not path or None in path or _RESCUE.search(linux[2]):
                continue
            release = image["release"]
            if release not in found or (len(path) > 1 and release not in nested):
                found[release] = ">".join(each for each in path if each)
            if len(path) > 1:
                nested.add(release)
    return found


def parse_specified(files: Mapping[str, str]) -> Mapping[str, str]:
    """Names of entries by release, from files of the Boot Loader Specification by their paths."""
    found: dict[str, str] = {}
    for path, text in sorted(files.items()):
        words = dict(line.split(None, 1) for line in text.splitlines() if len(line.split(None, 1)) > 1)
        image = _IMAGE.fullmatch(posixpath.basename(words.get("linux", "").strip()))
        release = words.get("version", "").strip() or (image["release"] if image else "")
        if release and "rescue" not in release and "rescue" not in posixpath.basename(path):
            found.setdefault(release, posixpath.basename(path).removesuffix(".conf"))
    return found


def parse_bootctl(text: str) -> Mapping[str, str]:
    """Names of entries by release, from `bootctl list --json=short`; none where it is no such list."""
    try:
        listed: Any = parse_json(text.encode())
    except ValueError:
        return {}
    found: dict[str, str] = {}
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict) and isinstance(each.get("id"), str) and isinstance(each.get("version"), str):
            found.setdefault(each["version"], each["id"])
    return found


def choose_boots(menu: BootMenu, boots: Iterable[Boot], where: str) -> dict[Boot, NextBoot]:
    """How to boot a machine in each way that a study asks for; as `choose_boot`.

    Raises:
        HostNotFitError: as `choose_boot`, or the default command line already has a word that a boot is to add.
    """
    wanted = tuple(dict.fromkeys(boots))
    words = {word for boot in wanted for word in boot.options}
    _refuse_usual(menu, words, where)
    return {boot: choose_boot(menu, boot, words=words, where=where) for boot in wanted}


def _refuse_usual(menu: BootMenu, words: Collection[str], where: str) -> None:
    """With a word that is there anyway, boots that are to have it would be the same as those that are not."""
    there = sorted(set(words).intersection(menu.line.split()))
    if there:
        raise HostNotFitError(
            f"the default command line of {where} already has {' '.join(there)}",
            remedy="take these options out of boot.options, or out of the default command line",
        )


def choose_boot(menu: BootMenu, boot: Boot, *, words: Collection[str], where: str) -> NextBoot:
    """How to boot a machine as asked.

    Args:
        menu: the menu of the machine, read while it ran its default kernel.
        boot: the boot that is asked for.
        words: all words that boots of the study add to the command line.
        where: the name of the machine, for errors.

    Raises:
        HostNotFitError: it has no such kernel, or no way to start it once.
    """
    kernel = InstalledKernel(release=menu.running, image="")
    if boot.kernel or boot.options:
        kernel = _choose_kernel(menu, boot.kernel or menu.running, where)
    unwanted = tuple(sorted(set(words) - set(boot.options)))
    if kernel.release == menu.running and not boot.options:
        return NextBoot(release=kernel.release, unwanted=unwanted, way=BootWay.DEFAULT)
    way = next((way for way in menu.entries if kernel.release in menu.entries[way]), None)
    if way is not None and not boot.options:
        entry = menu.entries[way][kernel.release]
        return NextBoot(release=kernel.release, unwanted=unwanted, way=way, entry=entry)
    if not menu.kexec:
        raise _no_way(menu, kernel, boot, where)
    _require_initrd(menu, kernel, where)
    return NextBoot(
        release=kernel.release,
        options=boot.options,
        unwanted=unwanted,
        way=BootWay.KEXEC,
        image=kernel.image,
        initrd=kernel.initrd,
        line=" ".join((*usual_words(menu.line), *boot.options)),
    )


def usual_words(line: str) -> tuple[str, ...]:
    """A command line without what a boot loader adds for itself."""
    return tuple(word for word in line.split() if not word.startswith(_OF_THE_LOADER))


def _choose_kernel(menu: BootMenu, asked: str, where: str) -> InstalledKernel:
    """The release that was asked for, or else the newest installed kernel of that series."""
    found = find_release((each.release for each in menu.kernels), asked)
    if found:
        return [each for each in menu.kernels if each.release == found][-1]
    there = ", ".join(each.release for each in menu.kernels[-_MOST_NAMED:])
    raise HostNotFitError(
        f"no kernel {asked} is installed there",
        where=where,
        remedy=f"name one of the kernels in its /boot: {there}; or install that one there"
        if there
        else "install it there: /boot has no kernel (vmlinuz-RELEASE)",
    )


def _require_initrd(menu: BootMenu, kernel: InstalledKernel, where: str) -> None:
    """HostNotFitError if a kernel could not mount its root file system, so that the machine would not come back."""
    roots = [word.removeprefix("root=") for word in menu.line.split() if word.startswith("root=")]
    if kernel.initrd or not roots or not roots[-1].startswith(_FOUND_BY_INITRD):
        return
    raise HostNotFitError(
        f"the kernel {kernel.release} has no initrd in /boot, and without one it does not find its root file system "
        f"({roots[-1]})",
        where=where,
        remedy=f"check whether /boot is full there (`df -h /boot`). Then make the file (`update-initramfs -c -k "
        f"{kernel.release}` or `dracut --kver {kernel.release}`), or choose another kernel",
    )


def _no_way(menu: BootMenu, kernel: InstalledKernel, boot: Boot, where: str) -> HostNotFitError:
    if boot.options:
        return HostNotFitError(
            f"adding options to the command line for one boot ({' '.join(boot.options)}) needs kexec",
            where=where,
            remedy="install kexec-tools there, and make sure that kernel.kexec_load_disabled is 0",
        )
    if menu.lasting:
        return HostNotFitError(
            f"GRUB cannot choose the kernel {kernel.release} for one boot only: to reset the choice it writes grubenv, "
            f"which is on {menu.lasting}, where GRUB cannot write",
            where=where,
            remedy="install kexec-tools there, or have /boot on a plain partition with ext4 or xfs",
        )
    return HostNotFitError(
        f"the kernel {kernel.release} is installed there, but cannot be started for one boot only",
        where=where,
        remedy="install kexec-tools there, or add an entry for it to GRUB (grub-reboot) or systemd-boot (bootctl)",
    )
