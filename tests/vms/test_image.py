"""What an image is made of, with programs that only seem to run: nothing half made is for others, nothing leads out."""

import gzip
import lzma
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from held_files import HOLD
from pgstrata.errors import HostNotFitError, UsageError
from pgstrata.model import sizes
from pgstrata.ports.host import Completed
from pgstrata.system.guests import ASSEMBLE
from pgstrata.vms.image import _HAS_IDS, Builder, find_image, making

RELEASE = "6.1.0-56-cloud-amd64"
KERNEL = (bytes(0x202) + b"HdrS\x0f\x02").ljust(0x236, b"\0") + b"\x01\0" + b"kernel"
"""Begins as a kernel for x86-64 does: version 2.15 of the boot protocol, and the first bit of xloadflags."""
NEEDED = ("virtio_pci", "virtio_blk", "virtio_net", "ext4")


def fill_package(root: Path, *, release: str = RELEASE) -> None:
    (root / "boot").mkdir(parents=True)
    (root / "boot" / f"vmlinuz-{release}").write_bytes(KERNEL)
    fill_modules(root, release)


def fill_modules(root: Path, release: str) -> None:
    modules = root / "lib" / "modules" / release
    modules.mkdir(parents=True)
    for name in NEEDED:
        (modules / f"{name}.ko").write_bytes(b"module")
    (modules / "modules.builtin").write_text("")


class SeemingHost:
    """Runs nothing: each program leaves what it would leave; `modes` are those of the folder while they run."""

    user = "root"
    name = "local"
    machine, suite = "x86_64", "bookworm"

    def __init__(self, partial, fill=fill_package):
        self.partial, self.fill = partial, fill
        self.ran, self.modes = [], []

    def read(self, path):
        return Path(path).read_bytes()

    def said_of_itself(self, argv):
        if argv == ("uname", "-m"):
            return f"{self.machine}\n"
        return f"{self.suite}\n" if "os-release" in argv[-1] else ""

    def run(self, command, **_):
        self.ran.append(command.argv)
        if self.partial.exists():
            self.modes.append(stat.S_IMODE(self.partial.stat().st_mode))
        program, *words = command.argv
        text = self.said_of_itself(command.argv)
        if program == "ssh-keygen":
            Path(words[-1]).write_text("secret")
            Path(f"{words[-1]}.pub").write_text("ssh-ed25519 AAAA pgstrata")
        elif program == "apt-cache":
            text = f"linux-image-{RELEASE} - Linux 6.1 for x86-64 cloud (signed)\n"
        elif program == "apt-get" and words[0] == "download":
            Path(command.folder, "kernel.deb").write_bytes(b"package")
        elif program == "apt-get":
            text = "http://deb.example/debian bookworm\n"
        elif program == "dpkg":
            self.fill(Path(words[-1]))
        elif program == "make":
            fill_modules(Path(words[3].removeprefix("INSTALL_MOD_PATH=")), RELEASE)
        elif program == "depmod":
            modules = Path(words[1], "lib", "modules", words[2])
            (modules / "modules.dep").write_text("".join(f"{path.name}:\n" for path in modules.glob("*.ko*")))
        elif ASSEMBLE in words:
            Path(words[-1], "tree").mkdir()
            for left in ("root.img", "libc.so.6"):
                Path(words[-1], left).write_bytes(b"")
        return Completed(code=0, stdout=text.encode(), stderr=b"")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    (tmp_path / "busybox").write_bytes(b"busybox")
    monkeypatch.setattr("pgstrata.vms.image.BUSYBOX", str(tmp_path / "busybox"))
    return tmp_path / "cache"


def build(cache, kernel="6.1", **more):
    here = SeemingHost(cache / "vms" / ".deb12.partial", **more)
    Builder(here=here, cache=str(cache), note=lambda _: None).build("deb12", suite="bookworm", kernels=(kernel,))
    return here


def test_nobody_else_enters_what_is_half_made(cache):
    here = build(cache)
    assert set(here.modes) == {0o700}
    image = cache / "vms" / "deb12"
    assert stat.S_IMODE(image.stat().st_mode) == 0o755
    assert sorted(path.name for path in image.iterdir()) == [
        "host.pub", "id", "id.pub", "image.json", "kernels", "root.img",
    ]  # fmt: skip
    assert find_image(str(cache), "deb12").kernels == (RELEASE,)


def test_without_a_word_it_is_the_suite_of_this_machine_and_the_newest_kernel(cache, monkeypatch):
    here = SeemingHost(cache / "vms" / ".deb12.partial")
    builder = Builder(here=here, cache=str(cache), note=lambda _: None)
    image = builder.build("deb12")
    assert (image.suite, image.kernels) == ("bookworm", (RELEASE,))
    (made,) = [argv for argv in here.ran if argv[0] == "mmdebstrap"]
    assert made[-1] == "deb http://deb.example/debian bookworm main"
    monkeypatch.setattr(SeemingHost, "suite", "")
    with pytest.raises(UsageError, match="does not say the name of its suite") as caught:
        builder.build("deb12")
    assert "--suite" in caught.value.remedy


class PlainHost(SeemingHost):
    """As another user than root, without some programs."""

    user = "somebody"
    missing = ("fakeroot",)

    def run(self, command, **_):
        done = super().run(command)
        return Completed(code=1, stdout=b"", stderr=b"") if command.argv[-1] in self.missing else done


def test_a_program_that_only_others_than_root_need_is_missed_before_anything_is_fetched(cache):
    here = PlainHost(cache / "vms" / ".deb12.partial")
    with pytest.raises(HostNotFitError, match="needs fakeroot, missing on this machine"):
        Builder(here=here, cache=str(cache), note=lambda _: None).build("deb12", suite="bookworm", kernels=("6.1",))
    assert {argv[0] for argv in here.ran} == {"uname", "sh"}


def test_all_missing_programs_are_named_at_once_with_one_line_that_installs_them(cache, monkeypatch):
    monkeypatch.setattr("pgstrata.vms.image.BUSYBOX", "/bin/busybox")
    here = PlainHost(cache / "vms" / ".deb12.partial")
    here.missing = ("mmdebstrap", "mke2fs", "qemu-system-x86_64", "fakeroot", "newuidmap", "/bin/busybox")
    with pytest.raises(HostNotFitError, match=f"needs {', '.join(here.missing)}, missing") as caught:
        Builder(here=here, cache=str(cache), note=lambda _: None).build("deb12", suite="bookworm", kernels=("6.1",))
    packages = "mmdebstrap e2fsprogs qemu-system-x86 fakeroot uidmap busybox-static"
    assert caught.value.remedy.startswith(f"apt-get install {packages} (Debian")


def test_a_user_without_ids_for_files_of_the_guest_is_told_before_anything_is_fetched(cache):
    here = PlainHost(cache / "vms" / ".deb12.partial")
    here.missing = ("somebody",)  # the last word of the question
    with pytest.raises(HostNotFitError, match="the user somebody has no subordinate ids") as caught:
        Builder(here=here, cache=str(cache), note=lambda _: None).build("deb12", suite="bookworm", kernels=("6.1",))
    assert "--add-subuids 100000-165535" in caught.value.remedy
    assert {argv[0] for argv in here.ran} == {"uname", "sh"}


@pytest.mark.parametrize(("line", "code"), [("me:1:5", 0), ("1234:1:5", 0), ("some:1:5", 1), ("meme:1:5", 1), ("", 1)])
def test_ids_are_those_of_a_line_of_the_user_or_its_number(tmp_path, line, code):
    (tmp_path / "ids").write_text(f"other:7:8\n{line}\n")
    script = _HAS_IDS.replace("/etc/subuid /etc/subgid", f"{tmp_path}/ids").replace("$(id -u)", "1234")
    assert subprocess.run(("sh", "-c", script, "sh", "me"), check=False).returncode == code


def test_a_busybox_that_needs_libraries_is_refused_before_anything_is_fetched(cache, monkeypatch):
    monkeypatch.setattr("pgstrata.vms.image.BUSYBOX", sys.executable)
    here = SeemingHost(cache / "vms" / ".deb12.partial")
    with pytest.raises(HostNotFitError, match="needs shared libraries") as caught:
        Builder(here=here, cache=str(cache), note=lambda _: None).build("deb12", suite="bookworm", kernels=("6.1",))
    assert "busybox-static" in caught.value.remedy
    assert {argv[0] for argv in here.ran} == {"uname", "sh"}


def test_the_root_image_is_made_for_its_owner_alone(cache):
    assert any(ASSEMBLE in argv for argv in build(cache).ran)
    lines = ASSEMBLE.splitlines()
    made = next(place for place, line in enumerate(lines) if line.startswith("mke2fs"))
    assert [line for line in lines[:made] if line.startswith("umask")][-1] == "umask 077"
    assert not any("root.img" in line for line in lines[made + 1 :])


def link_module(root: Path) -> None:
    fill_package(root)
    secret = root.parents[4] / "secret"
    secret.write_text("of root alone")
    module = root / "lib" / "modules" / RELEASE / "ext4.ko"
    module.unlink()
    module.symlink_to(secret)


def link_modules(root: Path) -> None:
    fill_package(root)
    modules = root / "lib" / "modules"
    (modules / RELEASE).rename(root.parents[4] / RELEASE)
    modules.rmdir()
    modules.symlink_to(root.parents[4])


def link_boot(root: Path) -> None:
    fill_package(root)
    (root / "boot").rename(root.parents[4] / "boot")
    (root / "boot").symlink_to(root.parents[4] / "boot")


@pytest.mark.parametrize("fill", [link_module, link_modules, link_boot])
def test_a_package_does_not_lead_out_of_itself(cache, fill):
    with pytest.raises(HostNotFitError, match="a link leads out of the kernel's own files"):
        build(cache, fill=fill)
    assert not (cache / "vms" / "deb12").exists()
    assert not (cache / RELEASE / "modules.dep").exists()


def test_a_package_without_a_kernel_is_refused(cache):
    with pytest.raises(HostNotFitError, match="there is no kernel in this package"):
        build(cache, fill=lambda root: root.mkdir())
    with pytest.raises(HostNotFitError, match=f"the kernel has no {RELEASE}"):
        build(cache, fill=lambda root: (fill_package(root), (root / "lib").rename(root / "other")))


def test_a_package_is_read_with_a_bound_and_is_a_file(cache, tmp_path, monkeypatch):
    package = tmp_path / "own.deb"
    package.write_bytes(b"x" * 5000)
    here = build(cache, f"path:{package}")
    assert str(package) not in next(argv for argv in here.ran if argv[0] == "dpkg")
    monkeypatch.setattr(sizes, "KERNEL_PACKAGE", 4999)
    with pytest.raises(HostNotFitError, match="larger than"):
        build(cache, f"path:{package}")
    package.unlink()
    os.mkfifo(package)
    with pytest.raises(HostNotFitError, match="not an ordinary file"):
        build(cache, f"path:{package}")


@pytest.fixture
def tree(tmp_path):
    return make_tree(tmp_path / "linux")


def make_tree(source):
    (source / "include" / "config").mkdir(parents=True)
    (source / "include" / "config" / "kernel.release").write_text(f"{RELEASE}\n")
    (source / "arch" / "x86" / "boot").mkdir(parents=True)
    (source / "arch" / "x86" / "boot" / "bzImage").write_bytes(KERNEL)
    (source / "Makefile").write_text("modules_install:\n")
    return source


def test_a_tree_that_was_built_gives_its_kernel(cache, tree):
    build(cache, f"build:{tree}")
    assert (cache / "vms" / "deb12" / "kernels" / RELEASE / "vmlinuz").read_bytes() == KERNEL


@pytest.mark.parametrize("release", ["../../../../taken", "..", "6.1/../../../..", ""])
def test_a_release_is_no_path(cache, tree, tmp_path, release):
    (tree / "include" / "config" / "kernel.release").write_text(release)
    with pytest.raises(HostNotFitError, match="is not the release of a kernel"):
        build(cache, f"build:{tree}")
    assert not (tmp_path / "taken").exists()


@pytest.mark.root
@pytest.mark.company
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("theirs", ["", "Makefile", "include/config/kernel.release"])
def test_root_runs_no_makefile_that_another_user_can_change(cache, open_folder, theirs):
    tree = make_tree(open_folder / "linux")
    os.chown(tree / theirs, 65534, 65534)
    here = SeemingHost(cache / "vms" / ".deb12.partial")
    with pytest.raises(HostNotFitError, match="another user may change it"):
        Builder(here=here, cache=str(cache), note=lambda _: None).build(
            "deb12", suite="bookworm", kernels=(f"build:{tree}",)
        )
    assert "make" not in {argv[0] for argv in here.ran}


@pytest.mark.parametrize(("ending", "pack"), [("xz", lzma.compress), ("gz", gzip.compress)])
def test_a_module_is_unpacked_with_a_bound(cache, monkeypatch, ending, pack):
    def fill(root, content):
        fill_package(root)
        modules = root / "lib" / "modules" / RELEASE
        (modules / "ext4.ko").rename(modules / f"ext4.ko.{ending}")
        (modules / f"ext4.ko.{ending}").write_bytes(content)

    build(cache, fill=lambda root: fill(root, pack(b"module")))
    monkeypatch.setattr(sizes, "KERNEL_MODULE", 1 << 20)
    for content in (pack(bytes(2 << 20)), pack(b"module")[:-3], b"neither"):
        with pytest.raises(HostNotFitError, match="cannot be unpacked"):
            build(cache, fill=lambda root, content=content: fill(root, content))


def test_a_list_of_an_image_is_read_with_a_bound(cache):
    build(cache)
    listed = cache / "vms" / "deb12" / "image.json"
    listed.unlink()
    os.mkfifo(listed)
    with pytest.raises(HostNotFitError, match="the image deb12 is damaged"):
        find_image(str(cache), "deb12")


def test_a_folder_that_no_build_made_is_not_replaced(cache):
    own = cache / "vms" / "deb12" / "disk.qcow2"
    own.parent.mkdir(parents=True)
    own.write_bytes(b"of the user")
    with pytest.raises(HostNotFitError, match="this is not an image of pgstrata, so it is not replaced"):
        build(cache)
    assert own.read_bytes() == b"of the user"


@pytest.mark.parametrize("left", [(), ("image.json",), ("image.json", "notes.txt"), ("host.pub", "root.img")])
def test_an_image_an_empty_folder_and_a_damaged_image_are_replaced(cache, left):
    folder = cache / "vms" / "deb12"
    folder.mkdir(parents=True)
    for name in left:
        (folder / name).write_text('{"suite": "bookworm", "kernels": [], "oldest": []}')
    build(cache)
    assert find_image(str(cache), "deb12").kernels == (RELEASE,)
    assert not (folder / "former").exists()


@pytest.mark.parametrize(
    "content",
    [b"", b"kernel", b"MZ" + bytes(54) + b"ARM\x64" + bytes(600), KERNEL.replace(b"\x01\0kernel", b"\0\0kernel")],
    ids=["empty", "short", "arm64", "32 bits"],
)
def test_a_kernel_of_another_architecture_is_refused_before_it_is_booted(cache, tree, content):
    def fill(root):
        fill_package(root)
        (root / "boot" / f"vmlinuz-{RELEASE}").write_bytes(content)

    (tree / "arch" / "x86" / "boot" / "bzImage").write_bytes(content)
    for given in ({"fill": fill}, {"kernel": f"build:{tree}"}):
        with pytest.raises(HostNotFitError, match="not a kernel for x86-64"):
            build(cache, **given)
    assert not (cache / "vms" / "deb12").exists()


def test_a_tree_without_its_kernel_is_told_as_that(cache, tree):
    (tree / "arch" / "x86" / "boot" / "bzImage").unlink()
    with pytest.raises(HostNotFitError, match="the kernel cannot be read") as caught:
        build(cache, f"build:{tree}")
    assert "a tree in which the kernel was built" in caught.value.remedy


def test_a_machine_of_another_architecture_makes_no_images(cache, monkeypatch):
    monkeypatch.setattr(SeemingHost, "machine", "aarch64")
    with pytest.raises(HostNotFitError, match="for x86-64 only, but it is aarch64"):
        build(cache)


def test_an_image_is_not_replaced_while_it_is_in_use_or_being_made(cache):
    build(cache)
    image = cache / "vms" / "deb12" / "root.img"
    image.write_bytes(bytes(1000))
    words = (sys.executable, "-c", HOLD, str(image))
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(HostNotFitError, match="a virtual machine of the image deb12 is running"):
            build(cache)
        holder.stdin.close()
    with making(str(cache), "deb12"), pytest.raises(HostNotFitError, match="another pgstrata is making the image"):
        build(cache)
    assert image.read_bytes() == bytes(1000)
    build(cache)
    assert image.read_bytes() == b""
