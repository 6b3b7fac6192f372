"""`pgstrata vm list` and `vm clean`: what there is, what is removed and what is not."""

import json
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from held_files import HOLD
from pgstrata.app import vms
from pgstrata.app.vms import clean_images, show_disks, show_kernels
from pgstrata.cli.vm import vm_app as app
from pgstrata.errors import HostNotFitError, UsageError
from pgstrata.hosts.local import LocalHost
from pgstrata.vms.image import find_image, images_folder, list_images, making
from pgstrata.vms.kernel_builds import find_built


@pytest.fixture
def cache(tmp_path, monkeypatch):
    for name in ("CACHE", "STATE", "DATA", "LOCK"):
        monkeypatch.setenv(f"PGSTRATA_{name}", str(tmp_path / name.lower()))
    places = SimpleNamespace(data=str(tmp_path / "data"), cache=str(tmp_path / "cache"))
    machine = SimpleNamespace(places=places, host=LocalHost(), here=LocalHost(), clock=None)
    # another user, as who servers run, could not enter the folder of the test
    monkeypatch.setattr(vms, "open_machine", lambda _: nullcontext(machine))
    for name in ("one", "other"):
        folder = images_folder(str(tmp_path / "cache")) / name
        folder.mkdir(parents=True)
        (folder / "root.img").write_bytes(bytes(1000))
        (folder / "host.pub").write_text("ssh-ed25519 AAAA")
        (folder / "image.json").write_text(json.dumps({"suite": "bookworm", "kernels": ["6.1.0"], "oldest": []}))
    return str(tmp_path / "cache")


def names(cache):
    return list(list_images(cache))


def test_damaged_images_and_kernels_are_listed_and_removed(cache):
    (images_folder(cache) / "one" / "image.json").write_text("{")
    (images_folder(cache) / "other" / "image.json").unlink()
    folder = Path(cache, "kernels", "0123456789ab.00112233")
    folder.mkdir(parents=True)
    (folder / "kernel.json").write_text("[]")
    listed = vm("list").output
    assert "one  damaged  " in listed
    assert "pgstrata vm build other makes it anew" in listed
    assert "damaged: pgstrata vm clean removes it" in listed
    with pytest.raises(HostNotFitError, match="the image one is damaged"):
        find_image(cache, "one")
    with pytest.raises(HostNotFitError, match="there is no image two"):
        find_image(cache, "two")
    assert vm("clean", "one").output == "removed: one\n"
    assert clean_images(()).removed == ("other", "kernel 0123456789ab.00112233")
    assert names(cache) == []


FOREIGN = {
    "debian": ["disk.qcow2"],
    "keys": ["id", "id.pub"],
    "raw": ["root.img"],
    "docker": ["image.json", "root.img", "layers"],
    "server": ["host.pub", "host.key"],
}


@pytest.mark.parametrize("oldest", ["[1e999]", "[NaN]", "7", '["x"]', "[[]]"])
def test_an_image_whose_versions_are_no_versions_is_damaged(cache, oldest):
    listed = images_folder(cache) / "one" / "image.json"
    listed.write_text(f'{{"suite": "bookworm", "kernels": [], "oldest": {oldest}}}')
    assert "one  damaged  " in vm("list").output


def test_folders_that_no_build_made_are_neither_listed_nor_removed(cache, tmp_path):
    """PGSTRATA_CACHE may name a folder in which somebody keeps virtual machines of other programs."""
    for name, files in FOREIGN.items():
        for file in files:
            path = images_folder(cache) / name / file
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(b"of the user")
    kept = make_disks(cache, "debian.qcow2", "one.img", "ONE-0123456789ab.img", "one-0123456789ab.img")
    partial = images_folder(cache) / ".film.partial"
    partial.mkdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "image.json").write_text("{}")
    (images_folder(cache) / "linked").symlink_to(elsewhere)
    assert names(cache) == ["one", "other"]
    assert clean_images(("debian",)).unknown == ("debian",)
    clean_images(())
    assert all((images_folder(cache) / name / file).exists() for name, files in FOREIGN.items() for file in files)
    assert sorted(path.name for path in kept.iterdir()) == ["ONE-0123456789ab.img", "debian.qcow2", "one.img"]
    assert partial.is_dir()
    assert (elsewhere / "image.json").exists()


def test_of_an_image_on_another_disk_only_the_link_is_removed(cache, tmp_path):
    there = tmp_path / "large" / "one"
    there.parent.mkdir()
    (images_folder(cache) / "one").rename(there)
    (images_folder(cache) / "one").symlink_to(there)
    assert find_image(cache, "one").suite == "bookworm"
    assert clean_images(()).removed == ("one", "other")
    assert names(cache) == []
    assert (there / "root.img").exists()


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
    assert clean_images(()).removed == ("other", "kernel 0123456789ab.00112233")
    assert show_kernels() == ()


def test_an_image_whose_machine_runs_is_kept_and_so_are_all_others(cache):
    image = images_folder(cache) / "other" / "root.img"
    words = (sys.executable, "-c", HOLD, str(image))
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(HostNotFitError, match="a virtual machine of the image other is running"):
            clean_images(())
        assert names(cache) == ["one", "other"]
        assert clean_images(("one",)).removed == ("one",)
        holder.stdin.close()
    assert clean_images(()).removed == ("other",)
    assert names(cache) == []


def vm(*words):
    """A command of `pgstrata vm`, in this process, with the places of the test."""
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    return done


def make_disks(cache, *names):
    folder = Path(cache).parent / "data" / "vms"
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_bytes(bytes(5000))
    return folder


def test_an_image_goes_with_the_data_disks_of_its_studies_and_no_others(cache):
    folder = make_disks(cache, "one-0123456789ab.img", "one-0123456789ab.img.console", "one-two-0123456789ab.img")
    assert len(show_disks()) == 2
    assert clean_images(("one",)).removed == ("one", "data disk one-0123456789ab")
    assert [path.name for path in folder.iterdir()] == ["one-two-0123456789ab.img"]
    # of an image that is gone already
    assert clean_images(("one-two",)).removed == ("data disk one-two-0123456789ab",)
    assert show_disks() == ()


def test_a_name_of_which_there_is_nothing_is_told_and_the_others_are_removed(cache):
    done = clean_images(("one", "tpyo"))
    assert (done.removed, done.unknown) == (("one",), ("tpyo",))
    with pytest.raises(UsageError, match="is not a valid name for an image"):
        clean_images(("../other",))
    assert names(cache) == ["other"]


def test_what_a_killed_removal_left_is_removed_by_the_next_one(cache, monkeypatch):
    def die(path):
        (path / "host.pub").unlink(missing_ok=True)
        if path.exists():
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("pgstrata.system.files.remove_tree", die)
        with pytest.raises(KeyboardInterrupt):
            clean_images(("one",))
    assert names(cache) == ["other"]
    assert clean_images(()).removed == ("other", "unfinished image one")


def test_what_a_killed_build_left_is_removed_and_what_is_being_built_is_not(cache):
    partial = images_folder(cache) / ".half.partial"
    partial.mkdir()
    with making(cache, "half"), pytest.raises(HostNotFitError, match="another pgstrata is making the image half"):
        clean_images(())
    assert names(cache) == ["one", "other"]
    assert clean_images(("half",)).removed == ("unfinished image half",)
    assert not partial.exists()


def test_the_commands_say_what_there_is_and_what_became_of_it(cache):
    make_disks(cache, "one-0123456789ab.img")
    said = vm("list").stdout
    assert [line.split("  ")[:2] for line in said.splitlines()[:2]] == [["one", "bookworm"], ["other", "bookworm"]]
    assert said.splitlines()[-1].startswith("data disks of studies  ")
    done = vm("clean", "tpyo", "one")
    assert done.stdout == "removed: one, data disk one-0123456789ab\n"
    assert done.stderr == "there is no image tpyo, and no data disk or unfinished build of one\n"
    assert vm("clean", "one").stdout == "nothing was removed\n"
    assert vm("clean").stdout == "removed: other\n"
    assert vm("list").stdout == "there are no images: pgstrata vm build NAME makes one\n"


def test_an_image_that_is_not_there_is_named_with_what_makes_it(cache):
    done = CliRunner().invoke(app, ["boot", "missing"])
    assert isinstance(done.exception, HostNotFitError)
    assert done.exception.remedy == "make it: pgstrata vm build missing"
