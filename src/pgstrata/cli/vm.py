"""`pgstrata vm build | boot | list | clean`."""

import sys
from typing import Annotated

import typer

vm_app = typer.Typer(
    help="Virtual machines that pgstrata makes and boots.", no_args_is_help=True, rich_markup_mode=None
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of the image.")]


@vm_app.command("build")
def vm_build(
    name: Name,
    suite: Annotated[str, typer.Option(help="The suite of the distribution, such as bookworm.")] = "bookworm",
    kernel: Annotated[
        list[str] | None,
        typer.Option("--kernel", help="A series or release such as 6.1, path:FILE.deb or build:TREE (repeatable)."),
    ] = None,
) -> None:
    """Make an image: a root file system with sshd, and kernels. Packages come from this machine's apt sources."""
    from pgstrata.app.vms import build_image

    image = build_image(name, suite=suite, kernels=tuple(kernel or ("6.1",)), note=_tell)
    print(f"{image.name}: {image.suite}, kernels {', '.join(image.kernels)}, in {image.folder}")


@vm_app.command("boot")
def vm_boot(
    name: Name,
    kernel: Annotated[
        str, typer.Option("--kernel", help="A series or release; default the newest kernel of the image.")
    ] = "",
) -> None:
    """Boot an image once to check that it comes up, and stop it again."""
    from pgstrata.app.vms import try_image

    print(try_image(name, kernel=kernel, tell=_tell))


@vm_app.command("list")
def vm_list() -> None:
    """List images with their kernels, and kernels that `bisect` has built, with the disk space that they take."""
    from pgstrata.app.vms import show_images, show_kernels
    from pgstrata.units import render_bytes

    rows = show_images()
    for row in rows:
        image = row.image
        print(f"{image.name}  {image.suite}  {render_bytes(row.taken)}  kernels {', '.join(image.kernels)}")
    for kernel in show_kernels():
        print(f"built kernel  {render_bytes(kernel.taken)}  {kernel.release}")
    if not rows:
        print("there are no images: pgstrata vm build NAME makes one")


@vm_app.command("clean")
def vm_clean(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME...]", help="Images; default all.")] = None,
) -> None:
    """Remove images, and the data disks that studies made with them. None of the machines may be running.

    Without a name, kernels that `bisect` has built are removed, too.
    """
    from pgstrata.app.vms import clean_images

    gone = clean_images(names or ())
    print(f"removed: {', '.join(gone)}" if gone else "there was no such image: nothing was removed")


def _tell(text: str) -> None:
    print(text, file=sys.stderr)
