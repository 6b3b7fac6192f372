"""`pgstrata vm clean`: images are removed, unless a virtual machine of one of them runs."""

import json
import subprocess
import sys

import pytest

from pgstrata.app import vms
from pgstrata.app.vms import clean_images
from pgstrata.errors import HostNotFitError
from pgstrata.vms.image import images_folder, list_images

# As QEMU does: a shared lock of a byte of an image that it only reads.
_HOLD = """
import fcntl, os, sys
descriptor = os.open(sys.argv[1], os.O_RDONLY)
fcntl.lockf(descriptor, fcntl.LOCK_SH, 1, 100)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    for name in ("CACHE", "STATE", "DATA", "LOCK"):
        monkeypatch.setenv(f"PGSTRATA_{name}", str(tmp_path / name.lower()))
    monkeypatch.setattr(vms, "_clean_disks", lambda *_: None)
    for name in ("one", "other"):
        folder = images_folder(str(tmp_path / "cache")) / name
        folder.mkdir(parents=True)
        (folder / "root.img").write_bytes(bytes(1000))
        (folder / "image.json").write_text(json.dumps({"suite": "bookworm", "kernels": ["6.1.0"], "oldest": []}))
    return str(tmp_path / "cache")


def names(cache):
    return sorted(image.name for image in list_images(cache))


def test_an_image_whose_machine_runs_is_kept_and_so_are_all_others(cache):
    image = images_folder(cache) / "other" / "root.img"
    words = (sys.executable, "-c", _HOLD, str(image))
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(HostNotFitError, match="a virtual machine of the image other is running"):
            clean_images(())
        assert names(cache) == ["one", "other"]
        assert clean_images(("one",)) == ("one",)
        holder.stdin.close()
    assert clean_images(()) == ("other",)
    assert names(cache) == []
