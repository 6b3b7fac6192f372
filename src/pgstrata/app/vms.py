"""`pgstrata vm`: makes, boots, lists and removes images."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pgstrata.app.machine import Machine, open_machine
from pgstrata.app.places import find_machine_places
from pgstrata.app.site import make_socket_folder
from pgstrata.errors import HostNotFitError
from pgstrata.hosts.ssh import open_ssh
from pgstrata.model.boot import Boot
from pgstrata.ports.host import Command
from pgstrata.system import files
from pgstrata.system.locks import is_in_use
from pgstrata.vms.image import Builder, Image, images_folder, list_images, require_name
from pgstrata.vms.kernel_builds import list_built, read_release
from pgstrata.vms.machine import VirtualMachine

_OF_A_DISK: Final = re.compile(r"(?:[0-9a-f]{12}|try)\.img.*")
"""The end of the names of data disks and their other files, after the image's name: a study's key, or `try`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedImage:
    """An image, and the bytes that it takes on this machine's disk."""

    image: Image
    taken: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedKernel:
    """A kernel that was built from a commit, and the bytes that it takes on this machine's disk."""

    release: str
    taken: int


def build_image(name: str, *, suite: str, kernels: Sequence[str], note: Callable[[str], None]) -> Image:
    """Make an image in the cache (`vms.image.Builder.build`)."""
    with open_machine(note) as machine:
        builder = Builder(here=machine.here, cache=machine.places.cache, note=note)
        image = builder.build(name, suite=suite, kernels=kernels)
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
    images = list_images(find_machine_places().cache)
    return tuple(ListedImage(image=each, taken=_taken(each.folder)) for each in images)


def show_kernels() -> tuple[ListedKernel, ...]:
    """All kernels that were built from commits; nothing is changed."""
    built = list_built(find_machine_places().cache)
    return tuple(ListedKernel(release=read_release(folder), taken=_taken(folder)) for folder in built)


def clean_images(names: Sequence[str]) -> tuple[str, ...]:
    """Remove these images, or all; return the names of those that were removed.

    With all images go the kernels that were built from commits, and are among the names.

    HostNotFitError if a virtual machine of one of them runs; then nothing is removed.
    """
    cache = find_machine_places().cache
    for name in names:
        require_name(name)
    gone = [each for each in list_images(cache) if not names or each.name in names]
    for image in gone:
        _refuse_running(image)
    for image in gone:
        files.remove_tree(images_folder(cache) / image.name)
    with open_machine(lambda _: None) as machine:
        _clean_disks(machine, names)
    return (*(image.name for image in gone), *(() if names else _clean_kernels(cache)))


def _clean_kernels(cache: str) -> Iterator[str]:
    for folder in list_built(cache):
        yield f"kernel {folder.name}"
        files.remove_tree(folder)


def _refuse_running(image: Image) -> None:
    try:
        running = is_in_use(image.folder / "root.img")
    except FileNotFoundError:
        return
    if running:
        raise HostNotFitError(
            f"a virtual machine of the image {image.name} is running",
            where=str(image.folder),
            remedy="wait until the study or the `pgstrata vm boot` that uses it has ended, or interrupt it",
        )


def _clean_disks(machine: Machine, names: Sequence[str]) -> None:
    """Remove the data disks of these images, or all, and files that killed machines left with them."""
    folder = f"{machine.places.data}/vms"
    for name in machine.host.list_folder(folder):
        belongs = any(_OF_A_DISK.fullmatch(name.removeprefix(f"{image}-")) for image in names)
        if not names or belongs:
            machine.host.remove_tree(f"{folder}/{name}")
    if not names:
        for path in images_folder(machine.places.cache).glob(".machine-*"):
            files.remove_tree(path)


def _taken(folder: Path) -> int:
    return sum(os.lstat(path).st_blocks * 512 for path in folder.rglob("*"))
