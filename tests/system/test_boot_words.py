"""Words of a kernel's command line are compared as they are, whatever lies in the folder where that is done."""

import os
import subprocess

from pgstrata.system.boots import BootWay, NextBoot, boot_change


def test_a_word_is_no_pattern_of_file_names(tmp_path):
    programs, elsewhere = tmp_path / "bin", tmp_path / "elsewhere"
    programs.mkdir()
    elsewhere.mkdir()
    (elsewhere / "isolcpus=1").write_text("")
    for name, said in (("uname", "6.1.0"), ("cat", "quiet isolcpus=*")):
        (programs / name).write_text(f"#!/bin/sh\necho '{said}'\n")
        (programs / name).chmod(0o755)
    boot = NextBoot(release="6.1.0", way=BootWay.KEXEC, options=("isolcpus=*",))
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    read = boot_change(boot).read
    argv = ("sh", "-c", read.text, "sh", *read.arguments)  # without the usual PATH, which would find the real programs
    done = subprocess.run(argv, capture_output=True, text=True, check=True, cwd=elsewhere, env=environment)
    assert done.stdout == "6.1.0 isolcpus=*\n"
