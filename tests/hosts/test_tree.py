"""Sending folders to another machine."""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from pgstrata.errors import CommandFailedError, DiskFullError, HostFileError, HostLostError, HostNotFitError
from pgstrata.hosts import tree as sending
from pgstrata.hosts.contents import Reader, parse_read
from pgstrata.hosts.elf import foreign_architecture
from pgstrata.hosts.local import LocalHost
from pgstrata.hosts.shell import ShellHost
from pgstrata.hosts.ssh import open_ssh
from pgstrata.hosts.ssh_link import Patience
from pgstrata.hosts.tree import send_file, send_tree

pytestmark = pytest.mark.company


def header(machine, bits=2, order=1):
    return b"\x7fELF" + bytes((bits, order)) + bytes(12) + machine.to_bytes(2, "big" if order == 2 else "little")


@pytest.mark.parametrize(
    ("content", "machine", "foreign"),
    [
        (header(62), "x86_64", ""),
        (header(183), "aarch64", ""),
        (header(183), "x86_64", "aarch64"),
        (header(62), "aarch64", "x86_64"),
        (header(21), "ppc64le", ""),
        (header(21, order=2), "ppc64le", "ppc64"),
        (header(3, bits=1), "i686", ""),
        (header(3, bits=1), "x86_64", "i386/i486/i586/i686"),
        (header(9999), "x86_64", "ELF machine 9999"),
        (header(62), "a machine of tomorrow", ""),
        (b"#!/bin/sh\necho not a program at all\n", "x86_64", ""),
        (b"\x7fELF", "x86_64", ""),
    ],
)
def test_programs_for_another_architecture_are_told_apart(content, machine, foreign):
    assert foreign_architecture(content, machine) == foreign


def test_this_python_fits_this_machine():
    content = Path(sys.executable).read_bytes()[:20]
    assert foreign_architecture(content, os.uname().machine) == ""


# ------------------------------------------------------------------------------------- real connections


@pytest.fixture(scope="module")
def far(rig, tmp_path_factory):
    host = open_ssh(rig.destination, run=str(tmp_path_factory.getbasetemp() / "r"), config=rig.config)
    yield host
    host.close()


@pytest.fixture
def here():
    host = LocalHost()
    yield host
    host.close()


@pytest.fixture
def folder():
    # Not tmp_path: another user could not enter its parents.
    made = Path(tempfile.mkdtemp(prefix="pgstrata test ", dir="/tmp"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def tree(folder):
    """A folder with what a data folder and an installation have."""
    made = folder / "a tree"
    (made / "bin").mkdir(parents=True)
    (made / "empty").mkdir(mode=0o700)
    (made / "bin" / "program").write_bytes(
        header(62 if os.uname().machine == "x86_64" else 183) + os.urandom(3_000_000)
    )
    (made / "bin" / "program").chmod(0o755)
    (made / "bin" / "link").symlink_to("program")
    (made / "it's a \\ file").write_bytes(b"content")
    (made / "nothing").touch(mode=0o600)
    made.chmod(0o750)
    return made


def names(path):
    return sorted(found.name for found in path.iterdir()) if path.exists() else []


def look(path):
    """All that is in a folder."""
    return {
        str(found.relative_to(path)): (
            found.lstat().st_mode,
            str(found.readlink())
            if found.is_symlink()
            else hashlib.md5(found.read_bytes()).hexdigest()
            if found.is_file()
            else "",
        )
        for found in (path, *path.rglob("*"))
    }


@pytest.mark.root
def test_a_tree_arrives_whole_and_once(here, far, tree, folder):
    target = folder / "over there" / "made of it"
    sent = send_tree(here, far, str(tree), str(target))
    assert sent.sent
    assert sent.bytes >= 3_000_000
    assert len(sent.digest) == 64
    assert look(target) == look(tree)
    assert names(target.parent) == ["made of it"]
    again = send_tree(here, far, str(tree), str(target))
    assert (again.sent, again.digest) == (False, sent.digest)


@pytest.mark.root
def test_a_tree_of_another_user_belongs_to_the_user_over_there(far, tree, folder):
    for path in (tree, *tree.rglob("*")):
        shutil.chown(path, "nobody") if not path.is_symlink() else None
    shutil.chown(folder, "nobody")
    nobody = far.as_user("nobody")
    source = ShellHost(
        ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--reset-env", "sh"), name="n"
    )
    for host in (source, LocalHost(user="nobody")):
        target = folder / "there"
        assert send_tree(host, nobody, str(tree), str(target)).sent
        assert target.owner() == "nobody"
        assert look(target) == look(tree)
        host.close()
        shutil.rmtree(target)
    assert not list(Path("/tmp").glob("pgstrata-send.*"))


@pytest.mark.root
@pytest.mark.parametrize("change", ["content", "mode", "more", "less"])
def test_what_is_there_and_differs_is_refused_and_left_alone(here, far, tree, folder, change):
    target = folder / "there"
    send_tree(here, far, str(tree), str(target))
    if change == "content":
        (target / "it's a \\ file").write_bytes(b"CONTENT")
    elif change == "mode":
        (target / "nothing").chmod(0o644)
    elif change == "more":
        (target / "more").touch()
    else:
        (target / "nothing").unlink()
    before = look(target)
    with pytest.raises(HostFileError, match="something else") as caught:
        send_tree(here, far, str(tree), str(target))
    assert str(target) in caught.value.where
    assert look(target) == before


@pytest.mark.root
def test_binaries_of_another_architecture_are_refused_before_anything_is_sent(here, far, tree, folder):
    (tree / "bin" / "postgres").write_bytes(header(22, order=2) + bytes(100))
    with pytest.raises(HostNotFitError, match="bin/postgres is a program for s390x") as caught:
        send_tree(here, far, str(tree), str(folder / "over there" / "x"))
    assert caught.value.where == far.name
    assert not (folder / "over there").exists()


@pytest.mark.root
def test_too_little_room_is_found_before_anything_is_sent(here, far, tree, folder):
    small = folder / "small"
    small.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "small", small], capture_output=True)
    if done.returncode:
        pytest.skip(f"cannot mount here: {done.stderr.decode()}")
    try:
        with pytest.raises(DiskFullError):
            send_tree(here, far, str(tree), str(small / "x"))
        assert not names(small)
    finally:
        subprocess.run(["umount", small], check=True)


@pytest.mark.root
def test_what_cannot_be_read_here_is_said(far, tree, folder):
    (tree / "nothing").chmod(0)
    (tree / "empty").chmod(0o755)
    tree.chmod(0o755)
    nobody = LocalHost(user="nobody")
    with pytest.raises(CommandFailedError, match="tar") as caught:
        send_tree(nobody, far, str(tree), str(folder / "x"))
    assert "Permission denied" in str(caught.value)
    assert names(folder) == ["a tree"]
    nobody.close()


@pytest.mark.root
def test_what_cannot_be_written_there_is_said(here, far, tree, folder):
    nobody = far.as_user("nobody")
    with pytest.raises(HostFileError):
        send_tree(here, nobody, str(tree), str(folder / "x"))


@pytest.mark.root
def test_a_tree_that_was_cut_is_sent_again_from_the_start(here, rig, tree, folder, tmp_path_factory):
    with (tree / "large").open("wb") as file:
        file.truncate(3 << 30)
    source = f"""
from pgstrata.hosts.local import LocalHost
from pgstrata.hosts.ssh import open_ssh
from pgstrata.hosts.tree import send_tree
far = open_ssh({rig.destination!r}, run={str(tmp_path_factory.getbasetemp() / "r")!r}, config={rig.config!r})
send_tree(LocalHost(), far, {str(tree)!r}, {str(folder / "x")!r})
"""
    coordinator = subprocess.Popen([sys.executable, "-c", source])
    deadline = time.monotonic() + 20
    while not names(folder / ".x.part"):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    coordinator.send_signal(signal.SIGKILL)
    coordinator.communicate()
    assert not (folder / "x").exists()
    (tree / "large").unlink()
    patience = Patience(connect=5, alive=1, tries=2, pulse=0.3, silence=1.5)
    with_patience = open_ssh(
        rig.destination, run=str(tmp_path_factory.getbasetemp() / "r"), config=rig.config, patience=patience
    )
    assert send_tree(here, with_patience, str(tree), str(folder / "x")).sent
    assert look(folder / "x") == look(tree)
    assert names(folder) == ["a tree", "x"]
    with_patience.close()


@pytest.mark.root
def test_a_link_that_vanishes_meanwhile_is_a_lost_host(here, rig, tree, folder, tmp_path_factory):
    with (tree / "large").open("wb") as file:
        file.truncate(3 << 30)
    patience = Patience(connect=5, alive=1, tries=2, pulse=0.3, silence=1.5)
    run = str(tmp_path_factory.getbasetemp() / "r")
    far = open_ssh(rig.destination, run=run, config=rig.config, patience=patience)
    cutter = subprocess.Popen(["sh", "-c", f"sleep 1; ip link set {rig.link} down"])
    try:
        with pytest.raises(HostLostError):
            send_tree(here, far, str(tree), str(folder / "x"))
    finally:
        cutter.wait()
        rig.mend()
        far.close()
    assert not (folder / "x").exists()


# ------------------------------------------------------------------------------------- without a connection


class There(LocalHost):
    """This machine as if it were behind ssh; `change` is what a session's script becomes."""

    def __init__(self):
        super().__init__()
        self.change = lambda script: script

    def session(self, words):
        return tuple(self.change(word) for word in words)


@pytest.fixture
def there():
    host = There()
    yield host
    host.close()


@pytest.mark.parametrize("programs", ["bin", "base"])
def test_programs_and_data_are_read_there_and_compared(here, there, tree, folder, programs):
    (tree / "bin").rename(tree / programs)
    target = folder / "to" / "there"
    sent = send_tree(here, there, str(tree), str(target))
    assert sent.sent
    assert len(sent.digest) == 64
    assert look(target) == look(tree)
    assert names(target.parent) == ["there"]
    again = send_tree(here, there, str(tree), str(target))
    assert (again.sent, again.digest, again.bytes) == (False, sent.digest, sent.bytes)


@pytest.mark.parametrize("programs", ["bin", "base"])
@pytest.mark.parametrize(
    "accident",
    ["echo more >>nothing", r"""printf CONTENT >"it's a \ file" """, "rm nothing", "touch new", "chmod 644 nothing"],
)
def test_what_is_other_than_what_was_sent_is_not_taken(here, there, tree, folder, programs, accident):
    unpacked = '[ "$reader" != none ]'
    (tree / "bin").rename(tree / programs)
    there.change = lambda script: script.replace(unpacked, f"{accident}\n{unpacked}")
    with pytest.raises(HostFileError, match="what arrived is not what was sent"):
        send_tree(here, there, str(tree), str(folder / "to" / "there"))
    assert names(folder / "to") == []


@pytest.mark.parametrize("inside", [".", "postgresql"])
def test_a_program_with_the_same_crc_is_another_one(here, there, tree, folder, inside):
    program = tree / inside / "bin" / "server"
    program.parent.parent.mkdir(exist_ok=True)
    (tree / "bin").rename(program.parent)
    program.write_bytes(bytes(99))
    program.chmod(0o755)
    target = folder / "there"
    assert send_tree(here, there, str(tree), str(target)).sent
    # the polynomial of cksum itself
    (target / inside / "bin" / "server").write_bytes(bytes(50) + bytes.fromhex("0104c11db7") + bytes(44))
    with pytest.raises(HostFileError, match="there is something else already") as caught:
        send_tree(here, there, str(tree), str(target))
    assert "bin/server' differs" in str(caught.value)


def test_what_another_attempt_left_half_sent_is_removed_first(here, there, tree, folder):
    left = folder / "to" / ".there.part"
    left.mkdir(parents=True)
    (left / "half").write_bytes(b"of a file")
    assert send_tree(here, there, str(tree), str(folder / "to" / "there")).sent
    assert look(folder / "to" / "there") == look(tree)
    assert names(folder / "to") == ["there"]


def test_a_session_that_fails_leaves_nothing_and_says_why(here, there, tree, folder):
    there.change = lambda script: script.replace("tar -b", "echo 'no way' >&2; exit 7; tar -b")
    with pytest.raises(CommandFailedError, match="tar ended with exit code 7") as caught:
        send_tree(here, there, str(tree), str(folder / "to" / "there"))
    assert "no way" in str(caught.value)
    assert names(folder / "to") == []


def test_nothing_is_unpacked_when_whoever_sends_has_gone(there, folder):
    words = there.session(("sh", "-c", sending._RECEIVE, "sh", str(folder), "mark"))
    for said in (b"", b"unpack", b"unpack\n", b"unpack sha256", b"\n"):
        assert subprocess.run(words, input=said, check=False, stdout=subprocess.DEVNULL).returncode == 1


def test_what_a_login_says_first_is_left_out(here, there, tree, folder):
    there.change = lambda script: script.replace("export LC_ALL", "echo Welcome; printf 'x86_64 '; export LC_ALL")
    assert send_tree(here, there, str(tree), str(folder / "to" / "there")).sent
    assert look(folder / "to" / "there") == look(tree)


def test_a_program_that_is_missing_there_is_named_before_anything_is_sent(here, there, tree, folder):
    there.change = lambda script: script.replace('command -v "$program"', '[ "$program" != xargs ]')
    with pytest.raises(HostNotFitError, match="the program xargs is missing"):
        send_tree(here, there, str(tree), str(folder / "to" / "there"))
    assert not (folder / "to").exists()


def test_a_session_that_ends_before_it_begins_is_told(here, there, tree, folder):
    there.change = lambda script: script.replace("missing=\n", "echo 'no shell for you' >&2; exit 9\n")
    with pytest.raises(CommandFailedError, match="sh ended with exit code 9") as caught:
        send_tree(here, there, str(tree), str(folder / "to" / "there"))
    assert "no shell for you" in str(caught.value)


def test_a_link_in_bin_to_a_program_of_another_architecture_is_refused(here, there, tree, folder):
    (tree / "s390x").write_bytes(header(22, order=2) + bytes(100))
    (tree / "bin" / "postgres").symlink_to("../s390x")
    with pytest.raises(HostNotFitError, match="bin/postgres is a program for s390x"):
        send_tree(here, there, str(tree), str(folder / "to" / "there"))
    assert not (folder / "to").exists()


def test_more_files_than_a_pipe_holds_names_of_arrive(here, there, folder):
    many = folder / "many"
    many.mkdir()
    for number in range(3000):
        (many / f"a file with the number {number}").write_bytes(b"%d" % number)
    assert send_tree(here, there, str(many), str(folder / "there")).sent
    assert look(folder / "there") == look(many)


@pytest.mark.parametrize("change", ["content", "more", "less"])
def test_what_differs_is_named(here, there, tree, folder, change):
    target = folder / "to" / "there"
    send_tree(here, there, str(tree), str(target))
    if change == "content":
        (target / "bin" / "program").write_bytes((tree / "bin" / "program").read_bytes()[::-1])
    elif change == "more":
        (target / "bin" / "line\nbreak").touch()
    else:
        (target / "bin" / "link").unlink()
    with pytest.raises(HostFileError) as caught:
        send_tree(here, there, str(tree), str(target))
    name = {"content": "program", "more": r"line\nbreak", "less": "link"}[change]
    assert caught.value.details == (f"'bin/{name}' differs",)


def read_there(folder, reader, path=os.environ["PATH"]):
    """What a session says of a folder that is there."""
    words = ("sh", "-c", sending._RECEIVE, "sh", folder, "mark")
    done = subprocess.run(words, input=f"read {reader}\n".encode(), stdout=-1, check=True, env={"PATH": path})
    return parse_read(done.stdout.partition(b"\n")[2], reader)


@pytest.mark.parametrize("reader", [Reader.SHA256, Reader.CRC])
def test_each_difference_between_two_trees_makes_another_digest(folder, reader):
    made = folder / "tree"
    made.mkdir()
    (made / "a").write_bytes(b"12")
    (made / "b").write_bytes(b"34")
    (made / "link").symlink_to("a")
    seen = [read_there(made, reader).digest]
    for change in (
        lambda: (made / "a").write_bytes(b"21"),
        lambda: ((made / "a").write_bytes(b"213"), (made / "b").write_bytes(b"4")),
        lambda: (made / "a").chmod(0o600),
        lambda: made.chmod(0o700),
        lambda: ((made / "link").unlink(), (made / "link").symlink_to("b")),
        lambda: (made / "b").rename(made / "c"),
        (made / "folder").mkdir,
        (made / "empty").touch,
        (made / "line\nbreak").touch,
    ):
        change()
        seen.append(read_there(made, reader).digest)
    assert len(set(seen)) == len(seen)
    assert read_there(made, reader).digest == seen[-1]


def test_contents_are_the_same_with_openssl_and_without(tree, folder):
    (tree / "line\nbreak").touch()
    programs = folder / "programs"
    programs.mkdir()
    for name in ("sh", "find", "uname", "tar", "xargs", "cksum", "sha256sum"):
        (programs / name).symlink_to(shutil.which(name))
    found = [read_there(tree, Reader.SHA256, path) for path in (os.environ["PATH"], str(programs))]
    assert found[0] == found[1]
    expected = hashlib.sha256((tree / "bin" / "program").read_bytes()).hexdigest().encode()
    (line,) = [line for line in found[0].lines if line.startswith(b"bin/program\0")]
    assert line.endswith(b"\0" + expected)


# --------------------------------------------------------------------------------------------- single files


@pytest.mark.parametrize("name", ["prod.dump", "it's a \\ file", "-x", "--checkpoint-action=exec=false", "ünïcode"])
def test_a_file_of_any_name_arrives_with_its_contents(here, there, folder, name):
    (folder / name).write_bytes(b"content\n" * 100_000)
    (folder / name).chmod(0o400)
    (folder / "to").mkdir()
    assert send_file(here, there, f"{folder}/{name}", f"{folder}/to") == f"{folder}/to/{name}"
    assert names(folder / "to") == [name]
    assert (folder / "to" / name).read_bytes() == (folder / name).read_bytes()


def test_a_folder_arrives_whole_and_links_as_what_they_lead_to(here, there, folder):
    (folder / "dump").mkdir(mode=0o755)
    (folder / "dump" / "toc.dat").write_bytes(b"contents")
    (folder / "elsewhere").write_bytes(b"rows")
    (folder / "dump" / "1.dat").symlink_to(folder / "elsewhere")
    (folder / "link").symlink_to("dump")
    (folder / "to").mkdir()
    made = Path(send_file(here, there, f"{folder}/link", f"{folder}/to"))
    assert not made.is_symlink()
    assert {path.name: path.read_bytes() for path in made.iterdir()} == {"toc.dat": b"contents", "1.dat": b"rows"}
    assert not (made / "1.dat").is_symlink()


def test_a_file_that_cannot_be_sent_is_told(here, there, folder, monkeypatch):
    (folder / "to").mkdir()
    with pytest.raises(CommandFailedError, match="du"):
        send_file(here, there, f"{folder}/gone", f"{folder}/to")
    (folder / "dump").write_bytes(b"content")
    monkeypatch.setattr(there, "free_bytes", lambda _: 3)
    with pytest.raises(DiskFullError):
        send_file(here, there, f"{folder}/dump", f"{folder}/to")
    assert names(folder / "to") == []


@pytest.mark.root
def test_a_file_belongs_to_the_user_over_there(here, far, folder):
    (folder / "prod.dump").write_bytes(b"content")
    (folder / "prod.dump").chmod(0o600)
    other = far.as_user("nobody")
    (folder / "to").mkdir()
    shutil.chown(folder / "to", "nobody")
    sent = Path(send_file(here, other, f"{folder}/prod.dump", f"{folder}/to"))
    assert (sent.owner(), sent.read_bytes()) == ("nobody", b"content")
