"""Facts of this host as they are captured."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from pgstrata.collectors.hostfacts.sampler import capture_host_facts
from pgstrata.hosts.local import LocalHost


def test_the_kernels_messages_are_kept_only_where_everybody_may_read_them():
    with closing(LocalHost()) as host:
        captured = capture_host_facts(host)
    hidden = Path("/proc/sys/kernel/dmesg_restrict").read_text().strip() != "0"
    assert not (hidden and "host.dmesg.txt" in captured)
    assert "host.kernel.txt" in captured
