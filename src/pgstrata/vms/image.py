"""Images of virtual machines in the cache: a root file system and kernels, made once.

An image is a folder `vms/NAME`: `root.img`, `image.json`, `kernels/RELEASE/{vmlinuz,initrd.img}`, the host key of the
machine, and the key with which ssh logs in. Packages come from this machine's own apt sources.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from pgstrata.errors import HostNotFitError, UsageError
from pgstrata.model import sizes
from pgstrata.model.codec import parse_json
from pgstrata.ports.host import Command, Host
from pgstrata.servers.recipes import find_missing, missing_programs
from pgstrata.servers.shelf import cache_errors
from pgstrata.system import files, reading
from pgstrata.system.guests import ASSEMBLE, INCLUDED
from pgstrata.system.locks import is_in_use, locked
from pgstrata.vms.first_files import find_modules, make_first_files, require_inside, unfit
from pgstrata.vms.initramfs import BUSYBOX, require_static
from pgstrata.vms.kernels import HEADER_BYTES, choose_package, oldest_kernel, require_new_enough, require_x86_64
from pgstrata.vms.qemu import PROGRAM

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}")
_RELEASE: Final = re.compile(r"[0-9][A-Za-z0-9._+~-]{0,99}")
_TARGETS: Final = "$(SITE) $(CODENAME)"
_LONG: Final = 3600.0
_PARTS: Final = frozenset({"host.pub", "id", "id.pub", "image.json", "kernels", "root.img"})
"""Entries of an image's folder."""
_FORMER: Final = "former"
"""In the folder of an image, the one that it has replaced, until that is removed."""
_DAMAGE: Final = (OSError, ValueError, KeyError, TypeError, OverflowError)
NEWEST: Final = "newest"
"""In place of a series: the newest kernel for virtual machines in this machine's package sources."""
_TOOLS: Final = ("mmdebstrap", "mke2fs", "depmod", "dpkg", "ssh-keygen", PROGRAM)
_TOOLS_OF_USERS: Final = ("fakeroot", "newuidmap")
"""Users other than root also need these: mmdebstrap maps user ids, and in the image, files belong to root."""
_HAS_IDS: Final = 'for file in /etc/subuid /etc/subgid; do grep -Eq "^($1|$(id -u)):" "$file" || exit 1; done'
"""Whether a user has subordinate ids; mmdebstrap reads only these two files (subuid(5))."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestKernel:
    """A kernel that QEMU can boot: its release, and the folder with `vmlinuz` and `initrd.img`."""

    release: str
    folder: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An image in the cache. `oldest` is the oldest kernel version that its C library accepts; empty if unknown."""

    name: str
    folder: Path
    suite: str
    kernels: tuple[str, ...]
    oldest: tuple[int, ...] = ()

    def kernel(self, release: str) -> GuestKernel:
        """One of its kernels."""
        return GuestKernel(release=release, folder=self.folder / "kernels" / release)


def images_folder(cache: str) -> Path:
    """The folder of all images."""
    return Path(cache, "vms")


def find_image(cache: str, name: str) -> Image:
    """An image by its name; HostNotFitError if there is none, or if it is damaged."""
    require_name(name)
    folder = images_folder(cache) / name
    if not _is_made(folder):
        raise HostNotFitError(
            f"there is no image {name}", where=str(folder), remedy=f"make it: pgstrata vm build {name}"
        )
    try:
        return _read_image(folder)
    except _DAMAGE as error:
        raise HostNotFitError(
            f"the image {name} is damaged", where=str(folder), remedy=f"make it anew: pgstrata vm build {name}"
        ) from error


def _read_image(folder: Path) -> Image:
    """One of `_DAMAGE` if there is no image, or a damaged one."""
    facts: Any = parse_json(reading.read_regular(folder / "image.json", most=sizes.MARKER))
    return Image(
        name=folder.name,
        folder=folder,
        suite=str(facts["suite"]),
        kernels=tuple(map(str, facts["kernels"])),
        oldest=tuple(map(int, facts["oldest"])),
    )


def list_images(cache: str) -> tuple[str, ...]:
    """Names of all images, including damaged ones. Other folders are ignored: they may be somebody else's."""
    found = sorted(path.name for path in images_folder(cache).glob("*/") if _is_made(path))
    return tuple(name for name in found if _NAME.fullmatch(name))


def _is_made(folder: Path) -> bool:
    """Whether pgstrata made this folder: an image, or a damaged one, which has nothing but parts of an image."""
    with suppress(*_DAMAGE):
        _read_image(folder)
        return True
    with suppress(OSError):  # it is no folder, or may not be read
        there = {path.name for path in folder.iterdir()}
        return "host.pub" in there and there <= _PARTS
    return False


def _refuse_foreign(folder: Path) -> None:
    """HostNotFitError if the path exists and is neither an image nor an empty folder."""
    if _is_made(folder) or not os.path.lexists(folder):
        return
    if folder.is_symlink() or not folder.is_dir() or any(folder.iterdir()):
        raise HostNotFitError(
            "this is not an image of pgstrata, so it is not replaced",
            where=str(folder),
            remedy="choose another name for the image, or move what is here",
        )


def remove_image(image: Path, partial: Path) -> None:
    """Remove the image in a folder, by way of its `partial` of `making`: what an interrupt leaves is unfinished."""
    files.remove_tree(partial)
    files.rename(image, partial)
    files.remove_tree(partial)


def require_name(name: str) -> None:
    """UsageError if an image cannot have that name."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is not a valid name for an image",
            where="vm",
            remedy="use a-z, 0-9, dots, hyphens and underscores, at most 40 characters",
        )


def refuse_running(image: Path) -> None:
    """HostNotFitError if a virtual machine runs from the image in that folder."""
    try:
        running = is_in_use(image / "root.img")
    except FileNotFoundError:
        return
    if running:
        raise HostNotFitError(
            f"a virtual machine of the image {image.name} is running",
            where=str(image),
            remedy="wait until the study or the `pgstrata vm boot` that uses it has ended, or interrupt it",
        )


@contextmanager
def making(cache: str, name: str) -> Iterator[Path]:
    """The folder in which an image of that name is made, by one process at a time; it need not be there.

    HostNotFitError if another process makes that image.
    """
    folder = images_folder(cache)
    files.make_folders(folder, mode=0o755)
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(folder / f".{name}.lock", patience=0, waiting=lambda: None))
        except BlockingIOError:
            raise HostNotFitError(
                f"another pgstrata is making the image {name}",
                where=str(folder),
                remedy="wait until it has ended, or interrupt it",
            ) from None
        yield folder / f".{name}.partial"


def list_unfinished(cache: str) -> tuple[str, ...]:
    """Names of the images of which something half made is there."""
    folder = images_folder(cache)
    found = (path.name[1:].removesuffix(".partial") for path in folder.glob(".*.partial"))
    # the lock is there since the build began
    return tuple(sorted(name for name in found if _NAME.fullmatch(name) and (folder / f".{name}.lock").exists()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Builder:
    """Makes an image. `here` acts as the user of pgstrata; `note` is called with what takes a while."""

    here: Host
    cache: str
    note: Callable[[str], None]

    def build(self, name: str, *, suite: str = "", kernels: Sequence[str] = (NEWEST,)) -> Image:
        """Make an image; it replaces one with the same name.

        Args:
            name: name of the image.
            suite: suite of the distribution, such as bookworm; empty for that of this machine.
            kernels: series or releases (6.1), newest, path:FILE or build:TREE.

        Raises:
            UsageError: the name is not valid, or a kernel is given in a form that is not known.
            HostNotFitError: a program is missing, a kernel is not available, or it cannot run in the image; a machine
                of that image runs, or another process makes it.
            CommandFailedError: a package could not be fetched.
        """
        require_name(name)
        self._require_tools()
        with cache_errors(self.cache):
            _refuse_foreign(images_folder(self.cache) / name)
        refuse_running(images_folder(self.cache) / name)
        suite = suite or self._own_suite()
        if not suite:
            raise UsageError(
                "this machine's distribution does not say the name of its suite",
                where="/etc/os-release",
                remedy="name the suite of the root file system: --suite bookworm",
            )
        with cache_errors(self.cache):
            self._replace(Image(name=name, folder=images_folder(self.cache) / name, suite=suite, kernels=()), kernels)
        return find_image(self.cache, name)

    def _replace(self, image: Image, kernels: Sequence[str]) -> None:
        """What is half made is closed to all others: programs of root's in it, of any age, are for the guest alone."""
        folder = image.folder
        with making(self.cache, image.name) as partial:
            files.remove_rest(partial)
            try:
                files.make_folder(partial, mode=0o700)
                self._fill(replace(image, folder=partial), kernels)
                files.open_folder(partial)
                _refuse_foreign(folder)
                if folder.exists():
                    files.rename(folder, partial / _FORMER)
                files.rename(partial, folder)
                files.remove_tree(folder / _FORMER)
            finally:
                files.remove_rest(partial)

    def _fill(self, image: Image, kernels: Sequence[str]) -> None:
        folder = image.folder
        boot = folder / "boot"
        files.make_folder(boot)
        releases = tuple(dict.fromkeys(self._kernel(folder, each) for each in kernels))
        for key in ("id", "host"):
            self._run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "pgstrata", "-f", str(folder / key))
        self.note(f"fetching packages of {image.suite} and making the root file system")
        archive = folder / "root.tar"
        mode = "root" if self.here.user == "root" else "unshare"
        self._run(
            "mmdebstrap", "--quiet", f"--mode={mode}", "--variant=minbase", f"--include={','.join(INCLUDED)}",
            image.suite, str(archive), f"deb {self._mirror(image.suite)} {image.suite} main",
        )  # fmt: skip
        become_root = () if self.here.user == "root" else ("fakeroot", "--")
        self._run(*become_root, "sh", "-c", ASSEMBLE, "sh", str(folder))
        library = (folder / "libc.so.6").read_bytes()
        oldest = oldest_kernel(library) or ()
        for release in releases:
            require_new_enough(release, oldest, where=f"image {image.name}")
        for name in ("root.tar", "libc.so.6", "host"):
            files.remove_file(folder / name)
        for rest in ("boot", "tree"):
            files.remove_tree(folder / rest)
        facts = {"suite": image.suite, "kernels": releases, "oldest": oldest}
        files.write_new(folder / "image.json", json.dumps(facts).encode())

    def _kernel(self, folder: Path, level: str) -> str:
        """Unpack a kernel and make its initramfs; return its release."""
        self.note(f"fetching kernel {level}")
        kind, _, value = level.partition(":")
        tree = folder / "boot" / re.sub(r"[^A-Za-z0-9.]", "_", level)
        files.make_folder(tree)
        if kind == "build" and value:
            return self._built(folder, tree, Path(value))
        if kind == "path" and value:
            if Path(value).suffix != ".deb":
                raise UsageError(
                    f"{value} is not a Debian package of a kernel",
                    where=level,
                    remedy="name a .deb, or build:TREE",
                )
            archive = tree / "kernel.deb"
            with _reading(value):
                package = reading.read_regular(Path(value), most=sizes.KERNEL_PACKAGE)
            files.write_new(archive, package)
        else:
            listing = self._run("apt-cache", "search", "--names-only", "^linux-image-[0-9]")
            asked = "" if level == NEWEST else level
            self._run("apt-get", "download", choose_package(listing, asked), folder=tree)
            archive = next(tree.glob("*.deb"))
        self._run("dpkg", "-x", str(archive), str(tree / "root"))
        image = next((tree / "root" / "boot").glob("vmlinuz-*"), None)
        if image is None:
            raise unfit(level, "there is no kernel in this package (boot/vmlinuz-RELEASE)")
        require_inside(tree / "root", image)
        return self._take(folder, tree / "root", image, image.name.removeprefix("vmlinuz-"))

    def _built(self, folder: Path, tree: Path, source: Path) -> str:
        """Take a kernel that was built in its source tree; its modules are installed into a folder of the image."""
        with _reading(source):
            reading.read_own(source / "Makefile", most=sizes.SCRIPT)
            said = reading.read_own(source / "include/config/kernel.release", most=sizes.MARKER)
        release = said.decode("utf-8", "replace").strip()
        self._run("make", "-C", str(source), "-s", f"INSTALL_MOD_PATH={tree / 'root'}", "modules_install")
        return self._take(folder, tree / "root", source / "arch/x86/boot/bzImage", release)

    def _take(self, folder: Path, root: Path, image: Path, release: str) -> str:
        """Take over a kernel's image, and make its first file system of the modules below `root`; its release."""
        if not _RELEASE.fullmatch(release):
            raise unfit(str(image), f"{release!r:.80} is not the release of a kernel")
        with _reading(image), reading.open_regular(image) as file:
            require_x86_64(file.read(HEADER_BYTES), where=str(image))
        initrd = make_first_files(self.here, BUSYBOX, root, release)
        target = folder / "kernels" / release
        files.write_new(target / "initrd.img", initrd)
        files.copy_file(image, target / "vmlinuz")
        files.open_file(target / "vmlinuz")
        for each in (target, target.parent):
            files.open_folder(each)
        files.write_new(folder / "boot" / f"{release}.modules", str(find_modules(root, release)).encode())
        return release

    def _mirror(self, suite: str) -> str:
        """The address from which this machine's apt gets that suite, or else the suite of this machine."""
        listed = self._run("apt-get", "indextargets", "--format", _TARGETS, "Created-By: Packages")
        rows = [line.split()[:2] for line in listed.splitlines() if len(line.split()) > 1]
        for wanted in (suite, self._own_suite()):
            for site, codename in rows:
                if codename == wanted:
                    return site
        raise HostNotFitError(
            f"this machine's apt has no package source for {suite}",
            where="apt-get indextargets",
            remedy="add the distribution's package sources and run apt-get update",
        )

    def _own_suite(self) -> str:
        return self._run("sh", "-c", ". /etc/os-release; echo $VERSION_CODENAME").strip()

    def _require_tools(self) -> None:
        machine = self._run("uname", "-m").strip()
        if machine != "x86_64":
            raise HostNotFitError(
                f"virtual machines are made of this machine's packages, for x86-64 only, but it is {machine}",
                where=self.here.name,
                remedy="make and boot them on an x86-64 machine",
            )
        of_users = () if self.here.user == "root" else _TOOLS_OF_USERS
        if missing := find_missing(self.here, (*_TOOLS, *of_users, BUSYBOX)):
            raise missing_programs(missing, self.here.name, "making a virtual machine", apt_only=True)
        if of_users and self.here.run(_shell(_HAS_IDS, self.here.user), check=False).code:
            raise HostNotFitError(
                f"the user {self.here.user} has no subordinate ids, which a virtual machine's files need",
                where="/etc/subuid, /etc/subgid",
                remedy="as root: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 "
                f"{self.here.user} (choose numbers that no other line has)",
            )
        require_static(Path(BUSYBOX).read_bytes(), BUSYBOX)

    def _run(self, *argv: str, folder: Path | None = None) -> str:
        command = Command(argv=argv, folder=str(folder) if folder else "/", environment={"LC_ALL": "C"})
        return self.here.run(command, timeout=_LONG).text


def _shell(script: str, *words: str) -> Command:
    return Command(argv=("sh", "-c", script, "sh", *words), folder="/")


@contextmanager
def _reading(what: str | Path) -> Iterator[None]:
    """Failures of what the user has named, which are not failures of the cache."""
    try:
        yield
    except OSError as error:
        raise HostNotFitError(
            f"the kernel cannot be read: {error.strerror}",
            where=str(error.filename or what),
            remedy="name a package that can be read, or a tree in which the kernel was built and which root alone can "
            "change where pgstrata is root's",
        ) from error
