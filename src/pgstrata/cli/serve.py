"""`pgstrata serve`: studies and archives in the browser."""

import gc
import sys
import threading
from pathlib import Path
from typing import Annotated

import typer


def serve(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Where studies and archives are; default: the current folder.")
    ] = Path(),
    listen: Annotated[
        str,
        typer.Option("--listen", metavar="ADDRESS:PORT", help="An address of this machine. Port 0: one that is free."),
    ] = "127.0.0.1:0",
) -> None:
    """Show studies and archives in your browser.

    The pages are a list, each report, and the last hour and incidents of live servers. `serve` prints an address that
    works once, for one browser. Pages of running studies and recordings refresh themselves. Nothing can be changed
    through them. Ctrl-C ends it.
    """
    from pgstrata.app.httpd.listen import parse_listen
    from pgstrata.app.serving.service import Service

    tunnel = "listen at 127.0.0.1; from another machine, reach it through `ssh -L PORT:127.0.0.1:PORT`"
    address = parse_listen(listen, anywhere=False, remedy=tunnel)
    # it goes on for long, unlike most commands
    gc.enable()
    service = Service(folder, address)
    try:
        print(service.url, flush=True)
        print("open this address in your browser: it works once; Ctrl-C ends it", file=sys.stderr, flush=True)
        threading.Event().wait()
    except KeyboardInterrupt:
        print("ended", file=sys.stderr)
    finally:
        service.close()
