"""`pgstrata vm build | boot | list | clean`."""

import sys
from typing import Annotated

import typer

vm_app = typer.Typer(help="Make and boot virtual machines.", no_args_is_help=True, rich_markup_mode=None)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of the image.")]


@vm_app.command("build")
def vm_build(
    name: Name,
    suite: Annotated[
        str, typer.Option(help="The suite of the distribution, such as bookworm; default that of this machine.")
    ] = "",
    kernel: Annotated[
        list[str] | None,
        typer.Option(
            "--kernel",
            help="A series or release such as 6.1, path:FILE.deb or build:TREE (repeatable); default the newest.",
        ),
    ] = None,
) -> None:
    """Make an image of a virtual machine.

    It has a root file system with sshd, and kernels. Packages come from this machine's apt sources.
    """
    from pgstrata.app.vms import build_image

    image = build_image(name, suite=suite, kernels=tuple(kernel or ()), note=_tell)
    print(f"{image.name}: {image.suite}, kernels {', '.join(image.kernels)}, in {image.folder}")


@vm_app.command("boot")
def vm_boot(
    name: Name,
    kernel: Annotated[
        str, typer.Option("--kernel", help="A series or release; default the newest kernel of the image.")
    ] = "",
) -> None:
    """Boot an image once, and stop it again.

    This checks that it comes up.
    """
    from pgstrata.app.vms import try_image

    print(try_image(name, kernel=kernel, tell=_tell))


@vm_app.command("list")
def vm_list() -> None:
    """List images, kernels and data disks, and their sizes.

    Kernels are those that `bisect` has built, and data disks those of studies.
    """
    from pgstrata.app.vms import show_disks, show_images, show_kernels
    from pgstrata.units import render_bytes

    rows = show_images()
    for row in rows:
        if image := row.image:
            print(f"{row.name}  {image.suite}  {render_bytes(row.taken)}  kernels {', '.join(image.kernels)}")
        else:
            print(f"{row.name}  damaged  {render_bytes(row.taken)}  pgstrata vm build {row.name} makes it anew")
    for kernel in show_kernels():
        print(
            f"built kernel  {render_bytes(kernel.taken)}  {kernel.release or 'damaged: pgstrata vm clean removes it'}"
        )
    disks = show_disks()
    if disks:
        print(f"data disks of studies  {render_bytes(sum(disks))}  {len(disks)}")
    if not rows:
        print("there are no images: pgstrata vm build NAME makes one")


@vm_app.command("clean")
def vm_clean(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME...]", help="Images; default all.")] = None,
) -> None:
    """Remove images of virtual machines.

    The data disks that studies made with them are removed, too. None of the machines may be running.

    Without a name, kernels that `bisect` has built are removed, too.
    """
    from pgstrata.app.vms import clean_images

    done = clean_images(names or ())
    for name in done.unknown:
        _tell(f"there is no image {name}, and no data disk or unfinished build of one")
    print(f"removed: {', '.join(done.removed)}" if done.removed else "nothing was removed")


def _tell(text: str) -> None:
    print(text, file=sys.stderr)
