"""The kernels of a machine, read as a user who may use sudo there or may not."""

import subprocess
from types import SimpleNamespace

import pytest

from pgstrata.boots.observe import find_unknown, observe_menu
from pgstrata.errors import HostNotFitError
from pgstrata.ports.host import Completed
from pgstrata.system.boots import READ_MENU, READ_UNKNOWN

SUDO = ("sudo", "-n")
PRINTED = "\n==> running\n6.1.0-44-amd64\n\n==> line\nroot=/dev/vda ro\n\n==> files\n/boot/vmlinuz-6.1.0-44-amd64\n"


class Far:
    user, name = "alice", "ssh:db1"

    def __init__(self, refusal=""):
        self.refusal, self.asked = refusal, []

    def run(self, command, **_):
        self.asked.append(command.argv)
        if self.refusal and command.argv[:2] == SUDO:
            return Completed(code=1, stdout=b"", stderr=self.refusal.encode())
        return Completed(code=0, stdout=PRINTED.encode(), stderr=b"")


@pytest.mark.parametrize("privilege", [(), SUDO])
def test_the_menu_is_read_as_root(privilege):
    far = Far()
    menu = observe_menu(far, privilege)
    assert (menu.running, [each.release for each in menu.kernels]) == ("6.1.0-44-amd64", ["6.1.0-44-amd64"])
    assert far.asked[-1] == (*privilege, *READ_MENU.argv)


def test_without_sudo_the_reason_is_told_and_not_that_there_are_no_kernels():
    far = Far("sudo: a password is required\n")
    with pytest.raises(HostNotFitError, match="alice may not change this host: sudo -n is refused") as caught:
        observe_menu(far, SUDO)
    assert caught.value.details == ("sudo: a password is required",)
    assert "allow this user to use sudo" in caught.value.remedy
    assert far.asked == [(*SUDO, "true")]


def test_a_machine_without_sudo_is_told_so():
    def run(*_, **__):
        raise HostNotFitError("the program sudo is missing")

    with pytest.raises(HostNotFitError, match="sudo -n is refused") as caught:
        observe_menu(SimpleNamespace(user="alice", name="ssh:db1", run=run), SUDO)
    assert caught.value.details == ("the program sudo is missing",)


SAID = """[    0.000000] Linux version 6.1.0-44-amd64
[    0.036912] Kernel command line: BOOT_IMAGE=/vmlinuz root=/dev/vda ro mitigatons=off isolcpus=1 quiet
[    0.037011] Unknown kernel command line parameters "BOOT_IMAGE=/vmlinuz mitigatons=off", will be passed to user space.
[    0.040000] printk: log buffer data + meta data: 131072 + 458752 = 589824 bytes
"""


@pytest.fixture
def booted(tmp_path):
    """A machine whose `dmesg` prints a text."""

    def make(text):
        (tmp_path / "said").write_text(text)
        (tmp_path / "dmesg").write_text(f"#!/bin/sh\ncat {tmp_path}/said\n")
        (tmp_path / "dmesg").chmod(0o755)

        def run(command, **_):
            assert command.argv == READ_UNKNOWN.argv
            words = ("sh", "-c", f"PATH={tmp_path}:$PATH\n{READ_UNKNOWN.text}")
            done = subprocess.run(words, capture_output=True, check=False)
            return Completed(code=done.returncode, stdout=done.stdout, stderr=done.stderr)

        return SimpleNamespace(user="root", name="ssh:db1", run=run)

    return make


def test_a_word_that_the_kernel_does_not_know_is_found(booted):
    assert find_unknown(booted(SAID), (), ("isolcpus=1", "mitigatons=off")) == ("mitigatons=off",)


@pytest.mark.parametrize("text", [SAID, "", SAID.replace("Unknown kernel", "Other"), "Unknown kernel command line"])
def test_words_that_it_knows_and_messages_that_say_nothing_are_no_doubt(booted, text):
    assert find_unknown(booted(text), (), ("isolcpus=1",)) == ()


def test_words_that_are_read_before_the_list_of_parameters_exists_are_no_doubt(booted):
    said = SAID.replace('mitigatons=off", will', 'nopti nospectre_v2 mitigatons=off", will')
    assert find_unknown(booted(said), (), ("nopti", "nospectre_v2")) == ()
    assert find_unknown(booted(said), (), ("nopti", "mitigatons=off")) == ("mitigatons=off",)


def test_without_words_the_messages_are_not_read():
    assert find_unknown(SimpleNamespace(), SUDO, ()) == ()
