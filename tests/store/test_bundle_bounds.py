"""Bundles and studies that are made to take all memory or time; what is told of files that are not in them."""

import hashlib
import io
import json
import lzma
import tarfile
import time
from types import SimpleNamespace

import pytest

from pgstrata.errors import BundleError
from pgstrata.model import sizes
from pgstrata.model.bundle import MANIFEST, BundledFile
from pgstrata.store.bundles.anonymous import Anonymous
from pgstrata.store.bundles.archive import ArchiveReader
from pgstrata.store.bundles.manifest import check_files
from pgstrata.store.bundles.terms import Terms, find_terms
from pgstrata.store.bundles.unpack import _unpack

DIGEST = hashlib.sha256(b"x").hexdigest()
PLAN = b'{"plan": {"experiment": {"environments": []}}}'
LONG = 40_000
SECONDS = 1.5
"""What takes quadratic time takes longer; the rest takes hundredths."""


def bundled(path, size=1):
    return BundledFile(path=path, size=size, sha256=DIGEST)


def nothing_hidden():
    return Anonymous(Terms(hosts=(), users=(), words=(), kept=()))


def test_files_lie_in_a_limited_number_of_folders():
    check_files([bundled("plan.json"), bundled("/".join(("evidence", *"b" * 18, "x")))])
    with pytest.raises(ValueError, match="is not a file of a study"):
        check_files([bundled("plan.json"), bundled("/".join(("evidence", *"b" * 19, "x")))])


def test_of_too_many_files_the_rest_is_not_looked_at(monkeypatch):
    monkeypatch.setattr(sizes, "BUNDLE_FILES", 3)
    names = (bundled(f"evidence/b01/pg16/x/{number}") for number in range(100))
    with pytest.raises(ValueError, match="more than 3 files"):
        check_files(names)
    assert len(list(names)) == 96


def test_a_bundle_itself_has_a_limited_size(monkeypatch):
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        member = tarfile.TarInfo(MANIFEST)
        member.size = 2
        archive.addfile(member, io.BytesIO(b"{}"))
    packed = lzma.compress(plain.getvalue())
    monkeypatch.setattr(sizes, "BUNDLE_PACKED", len(packed))
    with pytest.raises(BundleError, match="manifest of the bundle is damaged"):
        ArchiveReader(io.BytesIO(packed), "b")
    monkeypatch.setattr(sizes, "BUNDLE_PACKED", len(packed) - 1)
    with pytest.raises(BundleError, match="too large"):
        ArchiveReader(io.BytesIO(packed), "b")


def test_a_shared_file_that_was_replaced_meanwhile_tells_nothing_of_what_it_leads_to(tmp_path):
    secret, shared = tmp_path / "secret", f"shared/{DIGEST}"
    secret.write_text("longer")

    def files():
        yield bundled(shared), b"x"
        (tmp_path / shared).unlink()
        (tmp_path / shared).symlink_to(secret)
        yield bundled("evidence/b01/pg16/x/y"), None

    _unpack(SimpleNamespace(files=files), tmp_path)


@pytest.mark.parametrize("text", ["a" * LONG, "a-" * (LONG // 2), "0" * LONG, "_" * LONG])
def test_names_are_replaced_in_linear_time(text):
    begun = time.process_time()
    assert nothing_hidden().text(text) == text
    assert time.process_time() - begun < SECONDS


def test_names_are_found_in_linear_time():
    begun = time.process_time()
    find_terms(PLAN, ["postgres://a:" * (LONG // 13)], ())
    assert time.process_time() - begun < SECONDS


def test_an_address_of_usual_length_is_still_replaced_as_a_whole():
    assert nothing_hidden().text(f"{'a' * 64}@example.org") == "user-1@host-1"


@pytest.mark.parametrize("content", [b"no JSON of 10.1.2.3", b"[" * 800 + b'"10.1.2.3"' + b"]" * 800, b"[" * 5000])
def test_what_is_called_json_and_is_none_is_changed_as_a_text(content):
    changed = nothing_hidden().content("evidence/b01/pg16/x/some.json", content)
    assert b"10.1.2.3" not in changed
    assert (b"198.18.0.1" in changed) == (b"10.1.2.3" in content)


def test_json_is_still_changed_value_by_value():
    changed = nothing_hidden().content("evidence/b01/pg16/x/some.json", b'{"at": ["10.1.2.3"]}')
    assert json.loads(changed) == {"at": ["198.18.0.1"]}
