"""Bundles: the same bytes for the same study, and nothing used of one that is damaged, altered or made up."""

import hashlib
import io
import json
import lzma
import os
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from pgstrata.errors import BundleError, DiskFullError, StudyError
from pgstrata.model import sizes
from pgstrata.model.bundle import MANIFEST
from pgstrata.model.server import Fingerprint
from pgstrata.store.bundles.manifest import parse_manifest, render_manifest
from pgstrata.store.bundles.pack import BundledStudy, write_bundle
from pgstrata.store.bundles.unpack import open_bundle, unpack_bundle
from pgstrata.store.load import load_study
from pgstrata.store.study import StudyStore, reparse_study


@pytest.fixture
def study(tmp_path, bench):
    plan = bench.plan()
    with StudyStore.create(tmp_path / "s", plan, "0.1.0") as store:
        for number, run in enumerate(plan.runs):
            bench.measure(store, run, 1000.0 + number)
        store.keep_fingerprint("host", bench.host)
        store.keep_fingerprint("environment/pg16", Fingerprint(facts={"version": "16.4"}))
    return tmp_path / "s"


def bundle(study, target):
    return write_bundle(BundledStudy(study), target, name="s", plan=load_study(study).plan.identity, version="0")


def unbundle(path, target, bench):
    with open_bundle(path) as opened:
        unpack_bundle(opened, target, lambda folder: reparse_study(folder, bench.derive))


def files_of(folder):
    names = {"catalogue.sqlite", "study.lock"}
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name.partition("-")[0] not in names
    }


def test_a_study_comes_out_as_it_went_in(study, tmp_path, bench):
    manifest, _ = bundle(study, tmp_path / "b.tar.xz")
    unbundle(tmp_path / "b.tar.xz", tmp_path / "there" / "t", bench)
    assert files_of(tmp_path / "there" / "t") == files_of(study)
    assert replace(load_study(tmp_path / "there" / "t"), name="s") == load_study(study)
    assert manifest.runs == 6
    shared = next((tmp_path / "there" / "t" / "shared").iterdir())
    assert shared.stat().st_nlink == 7
    assert shared.stat().st_mode & 0o777 == 0o444


def test_the_same_study_gives_the_same_bytes(study, tmp_path):
    bundle(study, tmp_path / "one")
    for path in study.rglob("*"):
        os.utime(path, (1, 1))
    bundle(study, tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_tar_alone_unpacks_it(study, tmp_path):
    bundle(study, tmp_path / "b.tar.xz")
    with tarfile.open(tmp_path / "b.tar.xz") as archive:
        archive.extractall(tmp_path / "by-tar", **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    unpacked = files_of(tmp_path / "by-tar")
    del unpacked[MANIFEST]
    assert unpacked == files_of(study)


def test_what_is_there_is_not_replaced(study, tmp_path, bench):
    (tmp_path / "b").write_text("mine")
    with pytest.raises(BundleError, match="this path exists already"):
        bundle(study, tmp_path / "b")
    assert (tmp_path / "b").read_text() == "mine"
    bundle(study, tmp_path / "c")
    with pytest.raises(StudyError, match="this path exists already"):
        unbundle(tmp_path / "c", study, bench)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "c", "s"]


def test_a_study_that_changes_meanwhile_is_not_bundled(study, tmp_path):
    opened = BundledStudy(study)
    header = next(study.rglob("pgbench.out"))

    class Changing:
        def path(self, path):
            return path

        def content(self, path, content):
            if path == "plan.json":
                header.write_bytes(header.read_bytes() + b"1")
            return content

    with pytest.raises(StudyError, match="changed while it was bundled"):
        write_bundle(opened, tmp_path / "b", name="s", plan="x", version="0", rewrite=Changing())
    assert not (tmp_path / "b").exists()


# ------------------------------------------------------------------------------------------------ altered


def members_of(path):
    with tarfile.open(path) as archive:
        return [(member, archive.extractfile(member).read() if member.isreg() else b"") for member in archive]


def write_archive(path, members, *, after=b""):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for member, content in members:
            member.size = len(content) if member.isreg() else member.size
            archive.addfile(member, io.BytesIO(content))
    path.write_bytes(lzma.compress(packed.getvalue()) + after)


def fails(path, tmp_path, bench, match):
    with pytest.raises(BundleError, match=match) as caught:
        unbundle(path, tmp_path / "out" / "t", bench)
    assert caught.value.remedy
    assert not (tmp_path / "out").exists() or list((tmp_path / "out").iterdir()) == []


def remade(manifest, members):
    """Members with another manifest in front."""
    return [(members[0][0], render_manifest(manifest)), *members[1:]]


@pytest.fixture
def whole(study, tmp_path):
    bundle(study, tmp_path / "b.tar.xz")
    return tmp_path / "b.tar.xz"


def test_a_bundle_that_was_cut_anywhere_is_refused(whole, tmp_path, bench):
    content = whole.read_bytes()
    for size in (0, 5, 100, len(content) // 2, len(content) - 20, len(content) - 1):
        (tmp_path / "cut").write_bytes(content[:size])
        fails(tmp_path / "cut", tmp_path, bench, "damaged or was altered")


def test_a_bit_that_was_turned_is_found(whole, tmp_path, bench):
    content = bytearray(whole.read_bytes())
    for place in range(20, len(content), len(content) // 25):
        turned = bytearray(content)
        turned[place] ^= 4
        (tmp_path / "turned").write_bytes(bytes(turned))
        fails(tmp_path / "turned", tmp_path, bench, "damaged|altered")


def test_a_figure_that_was_altered_is_found(whole, tmp_path, bench):
    members = members_of(whole)
    place = next(n for n, (member, _) in enumerate(members) if member.name.endswith("pgbench.out"))
    members[place] = (members[place][0], b"9" * len(members[place][1]))
    write_archive(tmp_path / "altered", members)
    fails(tmp_path / "altered", tmp_path, bench, "does not match its manifest")


def test_what_follows_or_is_missing_is_found(whole, tmp_path, bench):
    members = members_of(whole)
    write_archive(tmp_path / "more", [*members, (tarfile.TarInfo("evidence/b1/x/y/z"), b"x")])
    fails(tmp_path / "more", tmp_path, bench, "its manifest does not name")
    write_archive(tmp_path / "less", members[:-1])
    fails(tmp_path / "less", tmp_path, bench, "ends too early")
    write_archive(tmp_path / "twice", [*members, members[-1]])
    fails(tmp_path / "twice", tmp_path, bench, "its manifest does not name")
    (tmp_path / "behind").write_bytes(whole.read_bytes() + b"x")
    fails(tmp_path / "behind", tmp_path, bench, "there are data after its end")


def test_a_newer_format_is_named(whole, tmp_path, bench):
    members = members_of(whole)
    manifest = json.loads(members[0][1]) | {"format": 2, "new": True}
    members[0] = (members[0][0], json.dumps(manifest).encode())
    write_archive(tmp_path / "newer", members)
    fails(tmp_path / "newer", tmp_path, bench, r"has format 2(?s:.*)newer pgstrata")


@pytest.mark.parametrize(
    "path",
    [
        "../outside",
        "/etc/passwd",
        "evidence/../../x/y/z",
        "evidence/b01/./pg16/x/y",
        "evidence/b01/pg16/.hidden/x",
        "evidence/b01//pg16/x/y",
        "report.html",
        "catalogue.sqlite",
        "study.lock",
        "shared/passwd",
        "fingerprints/x",
        "evidence/b01",
        "evidence/b01/pg16/x/y\n",
        "plan.json/x",
        "",
        "a" * 2000,
    ],
)
def test_paths_that_no_study_has_are_refused(whole, tmp_path, bench, path):
    members = members_of(whole)
    manifest = parse_manifest(members[0][1], where="x")
    content = b"x"
    made_up = replace(manifest.files[0], path=path, size=1, sha256=hashlib.sha256(content).hexdigest())
    outside = [*remade(replace(manifest, files=(*manifest.files, made_up)), members), (tarfile.TarInfo(path), content)]
    write_archive(tmp_path / "outside", outside)
    fails(tmp_path / "outside", tmp_path, bench, "manifest of the bundle is damaged")


def test_a_file_that_is_there_twice_is_refused(whole, tmp_path, bench):
    members = members_of(whole)
    manifest = parse_manifest(members[0][1], where="x")
    twice = replace(manifest, files=(*manifest.files, manifest.files[-1]))
    write_archive(tmp_path / "twice", [*remade(twice, members), members[-1]])
    fails(tmp_path / "twice", tmp_path, bench, "occurs twice")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE])
@pytest.mark.parametrize("target", ["/etc/passwd", "../../x", "plan.json"])
def test_links_and_devices_are_refused(whole, tmp_path, bench, kind, target):
    members = members_of(whole)
    place = next(n for n, (member, _) in enumerate(members) if member.name.endswith("pgbench.out"))
    odd = tarfile.TarInfo(members[place][0].name)
    odd.type, odd.linkname = kind, target
    members[place] = (odd, b"")
    write_archive(tmp_path / "odd", members)
    fails(tmp_path / "odd", tmp_path, bench, "not an ordinary file|is an unexpected link")


def test_a_bundle_that_would_fill_the_disk_is_refused_before_anything_is_written(whole, tmp_path, bench):
    members = members_of(whole)
    manifest = parse_manifest(members[0][1], where="x")
    huge = tuple(
        replace(manifest.files[-1], path=f"evidence/b01/pg16/x/{n}", size=sizes.EVIDENCE)
        for n in range(sizes.BUNDLE_UNPACKED // sizes.EVIDENCE + 1)
    )
    write_archive(tmp_path / "huge", remade(replace(manifest, files=(*manifest.files, *huge)), members))
    fails(tmp_path / "huge", tmp_path, bench, "limit of 16 GiB")


def test_a_study_larger_than_the_disk_is_refused(whole, tmp_path, bench, monkeypatch):
    full = os.statvfs_result((4096, 4096, 10, 5, 5, 10, 10, 10, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda _: full)
    with pytest.raises(DiskFullError, match="the disk has 0 MiB free"):
        unbundle(whole, tmp_path / "out", bench)


@pytest.mark.timeout(20)
def test_headers_without_end_take_no_memory(tmp_path, bench):
    long = tarfile.TarInfo(MANIFEST)
    long.pax_headers = {"comment": "x" * (8 << 20)}
    write_archive(tmp_path / "long", [(long, b"{}")])
    fails(tmp_path / "long", tmp_path, bench, "one of its headers is too large")
    (tmp_path / "zeros").write_bytes(lzma.compress(b"\0" * (64 << 20)))
    fails(tmp_path / "zeros", tmp_path, bench, "damaged or was altered")


@pytest.mark.parametrize("content", [b"", b"no bundle", lzma.compress(b""), lzma.compress(b"x" * 5000)])
def test_other_files_are_no_bundles(tmp_path, bench, content):
    (tmp_path / "other").write_bytes(content)
    fails(tmp_path / "other", tmp_path, bench, "bundle is damaged|no bundle")


def test_places_that_hold_no_bundle_are_named(tmp_path, bench, study):
    fails(tmp_path / "missing", tmp_path, bench, "no such file")
    fails(study, tmp_path, bench, "folder, not a bundle")
    fails(Path("/dev/zero"), tmp_path, bench, "cannot be read")


@pytest.mark.parametrize("name", ["../x", "", ".", "..", ".x", "a/b", "a\nb", "x" * 300])
def test_the_name_of_the_study_leads_nowhere(whole, tmp_path, bench, name):
    members = members_of(whole)
    manifest = json.loads(members[0][1]) | {"study": name}
    members[0] = (members[0][0], json.dumps(manifest).encode())
    write_archive(tmp_path / "named", members)
    fails(tmp_path / "named", tmp_path, bench, "not the name of a study")
