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


def test_a_boot_loader_that_finds_no_room_begins_no_reboot(tmp_path):
    """The script itself, with programs that only seem to be those of a machine."""
    said = "cannot write to /boot/grub/grubenv: No space left on device"
    programs = {"grub-reboot": f'echo "{said}" >&2; exit 1', "reboot": f"touch {tmp_path}/rebooted"}
    for name in ("systemctl", "systemd-run", "setsid"):
        programs[name] = programs["reboot"]
    for name, text in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    script = boot_change(NextBoot(release="6.1.0-44", way=BootWay.GRUB, entry="sub>old")).do
    words = ("sh", "-c", f"PATH={tmp_path}:$PATH\n{script.text}", "sh", *script.arguments)
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.strip()) == (1, said)
    assert not (tmp_path / "rebooted").exists()
