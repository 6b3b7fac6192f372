"""The scripts of a boot, as far as they can run without one."""

import os
import subprocess

from pgstrata.system.boots import OTHERWISE, READ_MENU, BootWay, NextBoot, boot_change

RELEASE = os.uname().release


def run(script):
    return subprocess.run(script.argv, capture_output=True, text=True, check=False)


def read(**fields):
    return run(boot_change(NextBoot(way=BootWay.KEXEC, **fields)).read).stdout.strip()


def test_a_machine_says_whether_it_runs_what_it_was_booted_into():
    with open("/proc/cmdline") as file:
        words = file.read().split()
    assert read(release=RELEASE) == RELEASE
    assert read(release=RELEASE, options=(words[0],)) == f"{RELEASE} {words[0]}"
    assert read(release=RELEASE, options=("pgstrata_none=1",)) == OTHERWISE
    assert read(release=RELEASE, unwanted=(words[0],)) == OTHERWISE
    assert read(release=RELEASE, unwanted=("pgstrata_none=1",)) == RELEASE
    assert read(release="2.6.39") == OTHERWISE


def test_undoing_what_never_happened_does_nothing():
    change = boot_change(NextBoot(release="2.6.39", way=BootWay.DEFAULT))
    done = run(change.undo.with_argument(OTHERWISE))
    assert (done.returncode, done.stderr) == (0, "")


def test_the_menu_of_this_machine_is_printed_in_sections():
    printed = run(READ_MENU).stdout
    assert f"==> running\n{RELEASE}\n" in printed
    assert {"line", "files", "programs", "kexec_disabled"} <= {
        line.removeprefix("==> ") for line in printed.splitlines() if line.startswith("==> ")
    }
