"""`pgstrata vm`: makes, boots, lists and removes images."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from pgstrata.app.machine import Machine, open_machine
from pgstrata.app.places import find_machine_places
from pgstrata.app.site import make_socket_folder
from pgstrata.errors import HostNotFitError
from pgstrata.hosts.ssh import open_ssh
from pgstrata.model.boot import Boot
from pgstrata.ports.host import Command
from pgstrata.system import files
from pgstrata.vms.image import (
    NEWEST,
    Builder,
    Image,
    find_image,
    images_folder,
    list_images,
    list_unfinished,
    making,
    refuse_running,
    remove_image,
    require_name,
)
from pgstrata.vms.kernel_builds import list_built, read_release
from pgstrata.vms.machine import VirtualMachine

_OF_A_DISK: Final = re.compile(r"(?:[0-9a-f]{12}|try)(?:\.img.*)?")
"""The end of the names of data disks and their other files, after the image's name: a study's key, or `try`."""
_A_DISK: Final = re.compile(rf"[a-z0-9][a-z0-9._-]{{0,39}}-{_OF_A_DISK.pattern}")
"""Their whole names; other files of the folder may be somebody else's."""
_T = TypeVar("_T")
_BLOCK: Final = 512
"""Bytes of a block as stat(2) counts them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedImage:
    """An image, and the bytes that it takes on this machine's disk; `image` is None if it is damaged."""

    name: str
    image: Image | None
    taken: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedKernel:
    """A kernel that was built from a commit, and the bytes that it takes on this machine's disk.

    The release of one that is damaged is empty.
    """

    release: str
    taken: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """`removed` are names of images, or say what else was removed; nothing was found of `unknown` names."""

    removed: tuple[str, ...]
    unknown: tuple[str, ...] = ()


def build_image(name: str, *, suite: str, kernels: Sequence[str], note: Callable[[str], None]) -> Image:
    """Make an image in the cache (`vms.image.Builder.build`); without kernels with the newest one."""
    with open_machine(note) as machine:
        builder = Builder(here=machine.here, cache=machine.places.cache, note=note)
        image = builder.build(name, suite=suite, kernels=kernels or (NEWEST,))
        _hide(machine, str(image.folder / "root.img"))
        return image


def _hide(machine: Machine, path: str) -> None:
    """A root image holds the guest's host key: only those who boot it may read it."""
    mode = "600"
    if machine.host.user != machine.here.user:
        group = machine.here.run(Command(argv=("id", "-g", "--", machine.host.user))).text.strip()
        machine.here.run(Command(argv=("chgrp", "--", group, path)))
        mode = "640"
    machine.here.run(Command(argv=("chmod", mode, "--", path)))


@contextmanager
def opened_vm(machine: Machine, name: str, key: str, tell: Callable[[str], None]) -> Iterator[VirtualMachine]:
    """A virtual machine whose data disk is named by a key; it is stopped at the end, and its disk is kept."""
    folder = f"{machine.places.data}/vms"
    machine.host.make_folder(folder)
    made = VirtualMachine(
        name,
        places=machine.places,
        here=machine.here,
        host=machine.host,
        clock=machine.clock,
        data=f"{folder}/{name}-{key}.img",
        tell=tell,
    )
    try:
        yield made
    finally:
        made.stop()


def try_image(name: str, *, kernel: str, tell: Callable[[str], None]) -> str:
    """Boot an image once and return what it runs, with the seconds until ssh could log in; nothing is left of it."""
    with open_machine(tell) as machine, opened_vm(machine, name, "try", tell) as vm:
        begun = machine.clock.monotonic()
        try:
            vm.start(Boot(kernel=kernel))
            with (
                make_socket_folder() as run,
                closing(open_ssh(vm.destination, run=run, config=vm.ssh_config)) as transport,
            ):
                taken = machine.clock.monotonic() - begun
                said = transport.run(Command(argv=("uname", "-sr"))).text.strip()
            return f"{said}, reached by ssh after {taken:.1f} s ({vm.acceleration().name.lower()})"
        finally:
            vm.remove()


def show_images() -> tuple[ListedImage, ...]:
    """All images; nothing is changed."""
    cache = find_machine_places().cache
    return tuple(
        ListedImage(
            name=name,
            image=_unless_damaged(partial(find_image, cache, name)),
            taken=_taken(images_folder(cache) / name),
        )
        for name in list_images(cache)
    )


def show_kernels() -> tuple[ListedKernel, ...]:
    """All kernels that were built from commits; nothing is changed."""
    built = list_built(find_machine_places().cache)
    return tuple(
        ListedKernel(release=_unless_damaged(partial(read_release, folder)) or "", taken=_taken(folder))
        for folder in built
    )


def _unless_damaged(read: Callable[[], _T]) -> _T | None:
    try:
        return read()
    except HostNotFitError:
        return None


def show_disks() -> tuple[int, ...]:
    """The bytes that each data disk of a study takes on this machine's disk; nothing is changed."""
    disks = Path(find_machine_places().data, "vms").glob("*.img")
    return tuple(os.lstat(path).st_blocks * _BLOCK for path in disks)


def clean_images(names: Sequence[str]) -> Cleaned:
    """Remove these images, or all, with the data disks of studies, and what killed builds left of them.

    With all images go the kernels that were built from commits.

    HostNotFitError if a virtual machine of one of them runs, or one is being made; then nothing is removed.
    """
    cache = find_machine_places().cache
    for name in names:
        require_name(name)
    gone = [name for name in list_images(cache) if not names or name in names]
    unfinished = [each for each in list_unfinished(cache) if not names or each in names]
    for name in gone:
        refuse_running(images_folder(cache) / name)
    with ExitStack() as stack:
        partials = {name: stack.enter_context(making(cache, name)) for name in dict.fromkeys((*gone, *unfinished))}
        for name, partial in partials.items():
            if name in gone:
                remove_image(images_folder(cache) / name, partial)
            else:
                files.remove_tree(partial)
    with open_machine(lambda _: None) as machine:
        disks = tuple(_clean_disks(machine, names))
    removed = (
        *gone,
        *(f"unfinished image {name}" for name in unfinished),
        *(f"data disk {disk}" for disk in disks),
        *(() if names else _clean_kernels(cache)),
    )
    belonged = {*gone, *unfinished, *(name for name in names for disk in disks if _is_of(disk, name))}
    return Cleaned(removed=removed, unknown=tuple(name for name in dict.fromkeys(names) if name not in belonged))


def _clean_kernels(cache: str) -> Iterator[str]:
    for folder in list_built(cache):
        yield f"kernel {folder.name}"
        files.remove_tree(folder)


def _clean_disks(machine: Machine, names: Sequence[str]) -> Iterator[str]:
    """Remove the data disks of these images, or all, and files that killed machines left with them; name the disks."""
    folder = f"{machine.places.data}/vms"
    for file in machine.host.list_folder(folder):
        if any(_is_of(file, image) for image in names) if names else _A_DISK.fullmatch(file):
            machine.host.remove_tree(f"{folder}/{file}")
            if file.endswith(".img"):
                yield file.removesuffix(".img")
    if not names:
        for path in images_folder(machine.places.cache).glob(".machine-*"):
            files.remove_tree(path)


def _is_of(file: str, image: str) -> bool:
    """Whether a file belongs to a data disk of an image; `file` may lack the end of the disk's name."""
    rest = file.removeprefix(f"{image}-")
    return rest != file and _OF_A_DISK.fullmatch(rest) is not None


def _taken(folder: Path) -> int:
    return sum(os.lstat(path).st_blocks * _BLOCK for path in folder.rglob("*"))
