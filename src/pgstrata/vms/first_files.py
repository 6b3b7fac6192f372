"""The first file system of a guest, made of the modules of a kernel that lie in a folder of this machine.

Everybody may read what is made of them: so nothing in the folder may lead out of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pgstrata.errors import HostNotFitError
from pgstrata.model import sizes
from pgstrata.ports.host import Command, Host
from pgstrata.system import reading
from pgstrata.vms.initramfs import file_name, make_initramfs, unpacked
from pgstrata.vms.kernels import modules_in_order

_LONG: Final = 3600.0


def find_modules(root: Path, release: str) -> Path:
    """The folder of a kernel's modules below `root`, whether it is there or not."""
    folders = (root / "usr/lib/modules" / release, root / "lib/modules" / release)
    return next((path for path in folders if path.is_dir()), folders[0])


def make_first_files(here: Host, busybox: str, root: Path, release: str) -> bytes:
    """The initramfs with the modules below `root` that a guest needs for its disks and its network.

    Raises:
        HostNotFitError: a driver is missing, or something leads out of `root`.
    """
    modules = find_modules(root, release)
    require_inside(root, modules)
    command = Command(argv=("depmod", "-b", str(modules.parents[2]), release), folder="/", environment={"LC_ALL": "C"})
    here.run(command, timeout=_LONG)
    dependencies, builtin = (_read_text(root, modules / name) for name in ("modules.dep", "modules.builtin"))
    paths = modules_in_order(dependencies, builtin, where=release)
    for path in paths:
        require_inside(root, modules / path)
    contents = [(file_name(path), unpacked(here, str(modules / path))) for path in paths]
    return make_initramfs(Path(busybox).read_bytes(), contents)


def require_no_links(root: Path) -> None:
    """HostNotFitError for a symbolic link in what a build has installed: root reads these files, and gives them out."""
    link = next((path for path in root.rglob("*") if path.is_symlink()), None)
    if link is not None:
        raise unfit(str(link), "the build has installed a symbolic link")


def require_inside(root: Path, path: Path) -> None:
    """HostNotFitError where something unpacked is not there, or is elsewhere."""
    if not path.exists():
        raise unfit(str(path), f"the kernel has no {path.name}")
    if not path.resolve().is_relative_to(root.resolve()):
        raise unfit(str(path), "a link leads out of the kernel's own files")


def _read_text(root: Path, path: Path) -> str:
    require_inside(root, path)
    return reading.read_regular(path, most=sizes.SCRIPT).decode("utf-8", "replace")


def unfit(where: str, what: str) -> HostNotFitError:
    """A kernel that cannot be used."""
    return HostNotFitError(what, where=where, remedy="take another kernel, or build its package anew")
