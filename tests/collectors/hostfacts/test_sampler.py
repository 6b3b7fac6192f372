"""Facts of a host as they are captured: nothing of it may be read by root alone."""

from __future__ import annotations

import os
from contextlib import closing

import pytest

from pgstrata.collectors.hostfacts import sampler
from pgstrata.collectors.hostfacts.sampler import capture_host_facts, capture_messages, capture_parameters
from pgstrata.hosts.local import LocalHost


@pytest.fixture
def host():
    with closing(LocalHost()) as host:
        yield host


@pytest.mark.parametrize(("restricted", "kept"), [("1", b""), ("2", b""), ("", b""), ("0", b"a message\n")])
def test_the_kernels_messages_are_kept_only_where_everybody_may_read_them(
    host, tmp_path, monkeypatch, restricted, kept
):
    dmesg = tmp_path / "dmesg"
    dmesg.write_text("#!/bin/sh\necho a message\n")
    dmesg.chmod(0o755)
    (tmp_path / "restricted").write_text(f"{restricted}\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert capture_messages(host, str(tmp_path / "restricted")) == kept


def test_parameters_that_root_alone_may_read_are_not_kept(host, tmp_path):
    (tmp_path / "net").mkdir()
    for name, mode in (("somaxconn", 0o644), ("tcp_fastopen_key", 0o600)):
        (tmp_path / "net" / name).write_text("4096\n")
        (tmp_path / "net" / name).chmod(mode)
    assert capture_parameters(host, str(tmp_path)).decode() == f"{tmp_path}/net/somaxconn:4096\n"


def test_files_that_root_alone_may_read_are_not_kept(host, tmp_path, monkeypatch):
    for name, mode in (("1 serial", 0o400), ("2 name", 0o444)):
        (tmp_path / name).write_text("x\n")
        (tmp_path / name).chmod(mode)
    (tmp_path / "3 link").symlink_to("2 name")
    missing = tmp_path / "0-missing"
    monkeypatch.setattr(sampler, "_SECTIONS", {"host.system.txt": (str(missing), f"{tmp_path}/*")})
    name, link = tmp_path / "2 name", tmp_path / "3 link"
    assert capture_host_facts(host)["host.system.txt"].decode() == f"==> {name}\nx\n\n==> {link}\nx\n\n"


def test_every_section_of_this_host_has_something_in_it(host):
    captured = capture_host_facts(host)
    assert captured.keys() >= {*sampler._SECTIONS, "host.sysctl.txt", "host.kernel.txt"}
    assert b"==> /proc/version\nLinux" in captured["host.system.txt"]
    assert b"/proc/sys/kernel/osrelease:" in captured["host.sysctl.txt"]
