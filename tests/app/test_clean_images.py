"""`pgstrata vm clean`: images are removed, unless a virtual machine of one of them runs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pgstrata.app import vms
from pgstrata.app.vms import clean_images, show_kernels
from pgstrata.errors import HostNotFitError
from pgstrata.vms.image import images_folder, list_images
from pgstrata.vms.kernel_builds import find_built

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


def test_built_kernels_are_listed_and_go_with_all_images_alone(cache):
    folder = Path(cache, "kernels", "0123456789ab.00112233")
    folder.mkdir(parents=True)
    release = "6.9.0-g0123456789ab.00112233"
    (folder / "kernel.json").write_text(json.dumps({"release": release}))
    assert [kernel.release for kernel in show_kernels()] == [release]
    assert find_built(cache, release) == folder
    assert find_built(cache, "6.8.0-g0123456789ab.00112233") is None
    assert find_built(cache, "6.1.0-47-amd64") is None
    clean_images(("one",))
    assert folder.exists()
    assert clean_images(()) == ("other", "kernel 0123456789ab.00112233")
    assert show_kernels() == ()


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
