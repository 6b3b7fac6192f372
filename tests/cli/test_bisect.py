"""What a search says before anything is measured: exit code, place, remedy."""

import pytest

from program import pgstrata

GOOD = """
question = "?"
[factors]
server = ["16", "17", "18"]
connection = ["socket", "tcp"]
[[cells]]
workload = "select-only"
scale = 1
clients = 2
run = "1s"
"""
LONE = """
[[cells]]
workload = "select-only"
scale = 1
clients = 2
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("place")
    (folder / "good.toml").write_text(GOOD)
    (folder / "lone.toml").write_text(LONE)
    (folder / "guest.toml").write_text(f'[common]\nhost = "vm:deb12"\n{LONE}')
    (folder / "config").write_text("CONFIG_SMP=y\n")
    (folder / "folder").mkdir()
    return folder


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("missing.toml", "missing.toml: there is no such file"),
        ("good.toml", "--factor: the experiment has several factors\n  -> choose one of server, connection"),
        ("good.toml --factor host", "--factor: there is no factor 'host'"),
        ("good.toml --factor connection", "--factor: connection has 2 levels"),
        ("lone.toml", "there is only one environment"),
        ("good.toml --repo folder", "--repo was given without --git"),
        ("good.toml --git a..b", "--git was given without --repo"),
        (
            "good.toml --git a..b --repo folder --factor connection",
            "--factor: commits are levels of server or kernel, not of connection",
        ),
        ("good.toml --factor server --build make", "--build was given without --git and --factor kernel"),
        ("lone.toml --git a..b --repo folder --config x", "--config was given without --git and --factor kernel"),
        (
            "lone.toml --git a..b --repo folder --factor kernel",
            'lone.toml: kernels of commits are booted in virtual machines only, and not on this host\n  -> write host = "',
        ),
        ("guest.toml --git a..b --factor kernel", "--git was given without --repo\n  -> add --repo DIR, a clone"),
        (
            "guest.toml --git a..b --repo folder --factor kernel",
            "folder/.config: the configuration of the kernel cannot be read",
        ),
        (
            "guest.toml --git a..b --repo folder --factor kernel --config guest.toml",
            "guest.toml: this is not the configuration of a kernel",
        ),
        (
            "guest.toml --git a..b --repo folder --factor kernel --config config --build O=x",
            "--build: the build command sets O, which pgstrata needs for itself",
        ),
        (
            "guest.toml --git a..b --repo folder --factor kernel --config config --build 'make",
            "--build: the build command is not complete",
        ),
        (
            "guest.toml --git a..b --repo folder --factor kernel --config config",
            "  -> name a clone of the repository of Linux",
        ),
        ("lone.toml --git a..b --repo folder", "folder: there is no git repository that can be read"),
        ("lone.toml --git a..b --repo nowhere", "nowhere: there is no git repository that can be read"),
        ("lone.toml --git a --repo folder", "--git: 'a' is not a valid range of commits\n  -> write GOOD..BAD"),
        ("good.toml --factor server --budget soon", "--budget: 'soon' is not a duration"),
    ],
)
def test_what_cannot_be_searched_is_refused_with_a_remedy(place, arguments, said):
    ceiling = {"GIT_CEILING_DIRECTORIES": str(place.parent)}
    done = pgstrata(place, "bisect", *arguments.split(), environ=ceiling)
    assert done.returncode == 2, done.stdout + done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (place / "studies").exists()
