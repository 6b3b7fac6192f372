"""`pgstrata open`: the report of a study, a bundle or an archive, written where it can be read, and shown."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Final

from pgstrata import __version__
from pgstrata.app.opened import open_study
from pgstrata.app.places import find_machine_places, study_key
from pgstrata.experiment.keys import slug
from pgstrata.hosts.browser import choose_browsers, start_browser
from pgstrata.store.archives.schema import ARCHIVE
from pgstrata.store.study import MERGED_FILE
from pgstrata.system.files import PRIVATE_FOLDER, make_folders, write_error

_OPTION: Final = "-o"
_PAGE: Final = "report.html"


def write_shown(path: Path, output: Path | None) -> Path:
    """Write the report, and say where.

    It goes into a study's folder; that of a bundle, of an archive, or of a folder that cannot be written into a private
    folder in the cache. PgstrataError where there is nothing to report of, or it cannot be written.
    """
    if (path / ARCHIVE).is_file():
        from pgstrata.app.explain import load_profile  # noqa: PLC0415 - one of three kinds
        from pgstrata.app.report import write_page  # noqa: PLC0415
        from pgstrata.report.live.profile import make_profile_document  # noqa: PLC0415

        document = make_profile_document(load_profile(path, None, None), __version__)
        return write_page(document, output or _private(path), option=_OPTION, private=True)
    if (path / MERGED_FILE).is_file():
        from pgstrata.app.merge import load_merged  # noqa: PLC0415
        from pgstrata.app.report import write_page  # noqa: PLC0415
        from pgstrata.report.answer.merged import make_merged_document  # noqa: PLC0415

        merged = make_merged_document(load_merged(path))
        return write_page(merged, output or _place(path), option=_OPTION)
    with open_study(path) as opened:
        opened.head()
        from pgstrata.app.report import write_report  # noqa: PLC0415

        target = output or (_place(path) if opened.path == path else _private(path))
        return write_report(opened, target, pairs=False)


def _place(folder: Path) -> Path:
    return folder / _PAGE if os.access(folder, os.W_OK) else _private(folder)


def _private(path: Path) -> Path:
    """A file in the cache that other users cannot read, the same each time."""
    whole = path.absolute()
    folder = Path(find_machine_places().cache) / "reports"
    try:
        make_folders(folder.parent)
        make_folders(folder, mode=PRIVATE_FOLDER)
    except OSError as error:
        remedy = f"name a file with {_OPTION}"
        raise write_error("the folder of reports cannot be made", error, where=folder, remedy=remedy) from None
    return folder / f"{slug(whole.name.removesuffix('.tar.xz'))}-{study_key(str(whole))}.html"


def show_page(page: Path) -> str:
    """Open a page in the user's browser; why that is not possible, empty if it is."""
    browsers = choose_browsers(
        page.absolute().as_uri(), os.environ, which=shutil.which, root=os.geteuid() == 0, mac=sys.platform == "darwin"
    )
    return start_browser(browsers)
