"""Plans with a machine that is not there: what follows from memory cannot be known then."""

import shutil

import pytest

from pgstrata.app.question import load_plan
from pgstrata.app.site import SSH_CONFIG
from pgstrata.errors import HostLostError
from pgstrata.report.planning.plan import render_plan

pytestmark = pytest.mark.skipif(not shutil.which("ssh"), reason="ssh missing")

TEXT = """
blocks = 6
[factors]
server = ["17", "18"]
[common]
host = "ssh:nowhere"
{}
[[cells]]
workload = "select-only"
scale = 1
clients = 1
run = "1s"
"""
GIVEN = '[common.settings]\nshared_buffers = "64MB"\neffective_cache_size = "1GB"'


@pytest.fixture
def ask(tmp_path, monkeypatch):
    config = tmp_path / "config"
    config.write_text("Host nowhere\n    HostName 127.0.0.1\n    Port 1\n")
    monkeypatch.setenv(SSH_CONFIG, str(config))

    def run(given="", **more):
        file = tmp_path / "ask.toml"
        file.write_text(TEXT.format(given))
        return load_plan(file, **more)

    return run


def test_are_shown_with_what_cannot_be_known(ask):
    said = " ".join(render_plan(ask(sure=False), "ask.toml").split())
    assert "ssh:nowhere cannot be asked how much memory it has (" in said
    assert "this machine's: no machine with servers was asked" in said


def test_are_not_carried_out(ask):
    with pytest.raises(HostLostError) as caught:
        ask()
    assert "or give shared_buffers and effective_cache_size in the file" in caught.value.remedy


def test_need_nobody_where_memory_decides_nothing(ask):
    assert ask(GIVEN) == ask(GIVEN, sure=False)
