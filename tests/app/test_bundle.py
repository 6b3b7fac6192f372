"""Bundles of real studies: the same verdicts wherever they are opened, also without names; and their signatures."""

import gzip
import importlib.util
import io
import json
import lzma
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from program import pgstrata

_spec = importlib.util.spec_from_file_location("kept", Path(__file__).parents[1] / "kept" / "kept.py")
kept = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(kept)


def run(place, *arguments, code=0):
    done = pgstrata(place, *arguments)
    assert done.returncode == code, done.stderr
    return done


def shown(place, study):
    return json.loads(run(place, "show", study, "--json", "--why").stdout)


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    """The kept study of two hosts, derived, in a folder of its own."""
    place = tmp_path_factory.mktemp("hosts")
    study = kept.unpack("hosts", place)
    run(place, "reparse", study)
    return study


# the others take half a minute
QUICK = ("hosts", "causes")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.soak("bundles")) for name in kept.NAMES],
)
def test_a_bundle_shows_what_its_study_showed(name, tmp_path):
    study = kept.unpack(name, tmp_path)
    run(tmp_path, "reparse", study)
    run(tmp_path, "bundle", study, "-o", "b.tar.xz")
    expected = run(tmp_path, "show", study, "--json", "--why").stdout
    assert run(tmp_path, "show", "b.tar.xz", "--json", "--why").stdout == expected
    run(tmp_path, "unbundle", "b.tar.xz", "-o", "elsewhere/study")
    assert run(tmp_path, "show", "elsewhere/study", "--json", "--why").stdout == expected
    assert kept.digest(tmp_path / "elsewhere" / "study") == kept.digest(study)
    assert list(Path(tmp_path).glob(".pgstrata-*")) == []


def test_a_bundle_can_be_judged_and_reported_as_it_is(hosts, tmp_path):
    run(tmp_path, "bundle", hosts, "-o", "b.tar.xz")
    assert pgstrata(tmp_path, "gate", "b.tar.xz").stdout == pgstrata(tmp_path, "gate", hosts).stdout
    assert run(tmp_path, "report", "b.tar.xz").stdout == "report: study.html\n"
    assert "<!doctype html>" in (tmp_path / "study.html").read_text()[:100].lower()


# ------------------------------------------------------------------------------------------------ without names

NAMES = ("db1", "sandboxing", "builder", "198.19.187.1", "198.19.187.254", "f5855e79-98fc-4e3d-b424-5a565c576444",
         "pgstrata-db1-yke8z8p9", "model_tools_env")  # fmt: skip
PLANTED = {
    "host.sysctl.txt": "/proc/sys/kernel/hostname:zeus.olympus.example\n",
    "host.storage.txt": "==> /proc/mounts\nnas9:/export/pg /mnt/secretclient nfs4 rw,addr=10.20.30.40 0 0\n",
    "host.cpu.txt": "Serial\t\t: 10000000c0ffee11\n",
    "server.log": '2026-11-23 00:38:17.620 GMT [1] LOG:  connection from 2a02:8071:1234::77 at 3c:22:fb:01:02:03 '
    'by role "mallory" in /home/mallory/thesis on zeus\n',
    "pgbench.err": 'warning: server at "zeus.olympus.example" (10.20.30.41) said alice@corp.example\n',
}  # fmt: skip
PLANTED_NAMES = ("zeus", "olympus.example", "nas9", "secretclient", "10.20.30.4", "c0ffee11", "2a02:8071", "3c:22:fb",
                 "mallory", "thesis", "alice", "corp.example", "Nightingale")  # fmt: skip


def texts_of(bundle):
    """Every byte of a bundle that anybody could read, names of files included, packed files as they are inside."""
    with tarfile.open(bundle) as archive:
        for member in archive:
            yield member.name.encode() + b" " + member.linkname.encode()
            if member.isreg():
                content = archive.extractfile(member).read()
                yield gzip.decompress(content) if member.name.endswith(".gz") else content


def plant(study):
    """Names in every file of evidence in which one may stand, of the first run."""
    folder = min(study.glob("evidence/b01/*/*"))
    for name, line in PLANTED.items():
        path = folder / name
        content = path.read_bytes() + line.encode()
        path.unlink()
        path.write_bytes(content)
    samples = folder / "seconds.samples.gz"
    content = gzip.decompress(samples.read_bytes()).replace(b"198.19.187.254", b"10.20.30.42")
    samples.write_bytes(gzip.compress(content))
    for path in (study / "plan.json", study / "experiment.toml"):
        path.write_text(path.read_text().replace("Is the server on db1", "Does Nightingale's server on db1"))


@pytest.fixture(scope="module")
def planted(hosts, tmp_path_factory):
    place = tmp_path_factory.mktemp("planted")
    study = place / "study-of-mallory"
    shutil.copytree(hosts, study)
    plant(study)
    run(place, "reparse", study)
    done = run(place, "bundle", study, "-o", "b.tar.xz", "--anonymous", "--hide", "Nightingale")
    return place, study, done.stdout


def test_no_name_is_left_in_an_anonymous_bundle(planted):
    place, study, _ = planted
    there = b"\n".join(texts_of(place / "b.tar.xz"))
    for name in NAMES:
        # a short one may stand within a digest
        word = re.compile(rb"(?<![0-9a-zA-Z])" + re.escape(name.encode()) + rb"(?![0-9a-zA-Z])")
        places = [match.start() for match in re.finditer(re.escape(name.encode()), there)]
        assert not [there[at - 60 : at + 60] for at in places if word.match(there, at)]
    lower = there.lower()
    for name in PLANTED_NAMES:
        assert name.lower().encode() not in lower
    whole = b"\n".join(path.read_bytes() for path in study.rglob("*") if path.is_file())
    assert all(name.encode() in whole for name in PLANTED_NAMES if name != "10.20.30.4")


def test_verdicts_and_figures_are_the_same_without_names(planted):
    place, study, _ = planted
    ours, theirs = shown(place, study), shown(place, "b.tar.xz")

    def figures(document):
        return [
            {key: value for key, value in item.items() if key not in {"environment", "reference", "warnings"}}
            for item in document["comparisons"]
        ]

    assert figures(ours) == figures(theirs)
    assert json.dumps(ours["why"]).replace("db1", "host-1") == json.dumps(theirs["why"])
    assert theirs["comparisons"][0]["environment"]["name"].startswith("host-")


def test_what_was_replaced_is_told(planted):
    _, _, said = planted
    assert "left out: client.host.dmesg.txt, host.dmesg.txt" in said
    assert re.search(r"replaced: \d+ addresses, .*names of hosts", said)
    assert "read them before you publish" in said


def test_a_word_that_evidence_is_made_of_cannot_be_hidden(hosts, tmp_path):
    done = run(tmp_path, "bundle", hosts, "-o", "b.tar.xz", "--anonymous", "--hide", "latency", code=1)
    assert "would change what the study shows" in done.stderr
    assert not (tmp_path / "b.tar.xz").exists()
    done = run(tmp_path, "bundle", hosts, "-o", "b.tar.xz", "--hide", "x", code=2)
    assert "add --anonymous" in done.stderr


# ------------------------------------------------------------------------------------------------ signatures

needs_keygen = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is missing")


@pytest.fixture(scope="module")
def signed(hosts, tmp_path_factory):
    place = tmp_path_factory.mktemp("signed")
    for name in ("alice", "bob"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", place / name], check=True)
        key = (place / f"{name}.pub").read_text()
        (place / f"allowed-{name}").write_text(f"{name}@example.com {key}")
    return place, run(place, "bundle", hosts, "-o", "b.tar.xz", "--sign", "alice").stdout


@needs_keygen
def test_a_signed_bundle_says_by_whom(signed):
    place, said = signed
    assert "signed with the ED25519 key SHA256:" in said
    done = run(place, "unbundle", "b.tar.xz", "-o", "one", "--signer", "allowed-alice")
    assert "signed by alice@example.com (ED25519 key SHA256:" in done.stdout
    assert "--signer FILE says whose key that is" in run(place, "unbundle", "b.tar.xz", "-o", "two").stdout


@needs_keygen
def test_another_signer_than_asked_for_is_refused(signed, hosts):
    place, _ = signed
    done = run(place, "unbundle", "b.tar.xz", "-o", "three", "--signer", "allowed-bob", code=2)
    assert "not signed by anybody in allowed-bob" in done.stderr
    run(place, "bundle", hosts, "-o", "unsigned.tar.xz")
    done = run(place, "unbundle", "unsigned.tar.xz", "-o", "three", "--signer", "allowed-bob", code=2)
    assert "the bundle is not signed" in done.stderr
    done = run(place, "unbundle", "b.tar.xz", "-o", "three", "--signer", "missing", code=2)
    assert "cannot be read" in done.stderr
    assert not (place / "three").exists()


@needs_keygen
def test_a_signature_of_another_bundle_is_refused(signed, hosts):
    place, _ = signed
    with tarfile.open(place / "b.tar.xz") as archive:
        members = [(member, archive.extractfile(member).read() if member.isreg() else b"") for member in archive]
    place_of = {member.name: number for number, (member, _) in enumerate(members)}
    manifest = json.loads(members[place_of["manifest.json"]][1]) | {"version": "forged"}
    members[place_of["manifest.json"]] = (members[0][0], json.dumps(manifest).encode())
    with lzma.open(place / "forged.tar.xz", "wb") as packed, tarfile.open(fileobj=packed, mode="w") as archive:
        for member, content in members:
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    for options in ((), ("--signer", "allowed-alice")):
        done = run(place, "unbundle", "forged.tar.xz", "-o", "four", *options, code=2)
        assert "the signature does not match this bundle" in done.stderr
    assert "the signature does not match this bundle" in run(place, "show", "forged.tar.xz", code=2).stderr


@needs_keygen
def test_keys_that_cannot_be_used_are_named(hosts, tmp_path):
    done = run(tmp_path, "bundle", hosts, "--sign", "missing", code=2)
    assert "there is no such key" in done.stderr
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", tmp_path / "locked"], check=True)
    alone = {"SSH_ASKPASS": "/bin/false", "SSH_AUTH_SOCK": os.devnull}
    done = pgstrata(tmp_path, "bundle", hosts, "--sign", "locked", environ=alone)
    assert done.returncode == 2
    assert "could not be signed" in done.stderr
    assert "ssh-add" in done.stderr
    assert not list(tmp_path.glob("*.tar.xz"))
