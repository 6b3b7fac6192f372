"""What says whose a study is becomes stand-ins, the same ones everywhere; figures and what every machine has stay."""

import gzip
import json

import pytest

from pgstrata.model.packed import unpack
from pgstrata.store.bundles.anonymous import Anonymous
from pgstrata.store.bundles.terms import Terms, find_terms, is_ordinary

PLAN = {
    "plan": {
        "experiment": {
            "question": "?",
            "environments": [
                {"name": "db7", "server": {"kind": "prefix", "value": "/srv/acme/pg18"},
                 "host": {"kind": "ssh", "destination": "alice@db7.acme.example"}},
                {"name": "other", "server": {"kind": "dsn", "value": "billing"}, "host": {"destination": ""}},
            ],
        }
    }
}  # fmt: skip


def terms(*texts, words=()):
    return find_terms(json.dumps(PLAN).encode(), texts, words)


def anonymous(*texts, words=()):
    return Anonymous(terms(*texts, words=words))


def test_names_are_found_where_they_are_known_to_stand():
    found = terms(
        "/proc/sys/kernel/hostname:zeus\n/proc/sys/kernel/domainname:(none)",
        'connection to server at "db7.acme.example" (10.0.0.7), port 5432 failed',
        "nas.acme.example:/export /data nfs4 rw 0 0",
        'role "carol" does not exist\ncluster_name\tolympus\t\tcommand line\t',
        "/home/bob/work",
    )
    assert set(found.hosts) == {"billing", "db7.acme.example", "nas.acme.example", "olympus", "zeus"}
    assert set(found.users) == {"alice", "bob", "carol"}
    assert "acme" in found.words


def test_machines_of_clients_and_of_restarts_are_found():
    restart = ["sudo", "/usr/bin/ssh", "-vp", "2222", "-oUser=W", "dave@candidate.acme.example", "systemctl"]
    plan = json.loads(json.dumps(PLAN))
    for environment in plan["plan"]["experiment"]["environments"]:
        environment["client_hosts"] = [{"kind": "local", "destination": ""}, {"kind": "ssh", "destination": "loader"}]
        environment["server"]["restart"] = restart
    found = find_terms(json.dumps(plan).encode(), (), ())
    assert {"candidate.acme.example", "loader"} <= set(found.hosts)
    assert "dave" in found.users


def test_one_name_has_one_stand_in_however_it_is_spelled():
    hide = anonymous()
    assert hide.text("db7.acme.example, DB7.ACME.EXAMPLE, db7, db7-control, b01/db7/cell") == (
        "host-1, host-1, host-1, host-1-control, b01/host-1/cell"
    )
    assert hide.text("ssh:alice@db7.acme.example") == "ssh:user-1@host-1"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10.11.12.13 and 10.11.12.14, 10.11.12.13", "198.18.0.1 and 198.18.0.2, 198.18.0.1"),
        ("fe80::1c2d:3eff:fe4f:5a6b%eth0", "2001:db8::1%eth0"),
        ("bench 198.19.187.254(43334) idle", "bench 198.18.0.1(43334) idle"),
        ("3c:22:fb:01:02:03", "02:00:00:00:00:01"),
        ("root=UUID=5a8f3e1c-0b7d-4e4e-9c1d-2f3a4b5c6d7e ro", "root=UUID=00000000-0000-4000-8000-000000000001 ro"),
        ("Serial\t\t: 10000000c0ffee11", "Serial\t\t: serial-1"),
        ("systemd.machine_id=0123456789abcdef0123456789abcdef", "systemd.machine_id=serial-1"),
        ("(builder@sandboxing) (gcc", "(user-1@host-1) (gcc"),
        ("/home/bob/acme/data/base", "/home/name-1/name-2/data/base"),
        ("/tmp/pgstrata-x7/data", "/tmp/name-1/data"),
        ("/usr/local/megacorp/bin", "/usr/local/name-1/bin"),
        ("/dev/mapper/megacorp-root", "/dev/mapper/name-1"),
        ("/proc/sys/kernel/hostname:vm", "/proc/sys/kernel/hostname:host-1"),
    ],
)
def test_what_identifies_is_replaced(text, expected):
    assert Anonymous(Terms(hosts=(), users=(), words=(), kept=())).text(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "==> /proc/[0-9]*/stat <==",
        "/proc/22139/stat:22139 (postgres) R 22138",
        "/proc/sys/net/ipv4/conf/all/arp_accept:0",
        "2026-11-23 00:38:17.620 GMT [22139] LOG:  checkpoint; lsn=0/1E7C9F8, 12:34:56",
        "127.0.0.1 0.0.0.0 255.255.255.0 ::1",
        "SELECT x::text, y::date, (z)::dec FROM t WHERE a @> b AND c @@ d",
        "PostgreSQL 18.6 on x86_64-pc-linux-gnu, compiled by gcc (Debian 12.2.0-14+deb12u1) 12.2.0",
        "https://www.debian.org/support",
        "number of serialization failures: 0 (0.000%)",
        "/usr/lib/postgresql/18/bin/postgres /var/lib/postgresql/18/main /etc/postgresql.conf",
        "/dev/vda1 /dev/nvme0n1p2 /dev/dm-0 /dev/shm",
        "/proc/diskstats: 254       0 vda 74151 9532",
        "12.5 kB/s",
    ],
)
def test_figures_and_what_every_machine_has_stay(text):
    assert Anonymous(Terms(hosts=(), users=(), words=(), kept=())).text(text) == text


def test_ordinary_words_are_no_names_unless_they_are_to_be_hidden():
    assert "vm" in terms("/proc/sys/kernel/hostname:vm\n").kept
    assert anonymous("/proc/sys/kernel/hostname:vm\n").text("the vm") == "the vm"
    assert anonymous(words=("vm",)).text("the vm") == "the name-1"
    assert all(map(is_ordinary, ("pg18", "18.1", "postgresql-9.6", "REL_18_STABLE", "sdb1", ".s.PGSQL.5432", "x")))


def test_packed_files_are_packed_again_without_a_time():
    hide = anonymous()
    first, again = (hide.content("evidence/b01/db7/c/sessions.samples.gz", gzip.compress(b"on db7")) for _ in range(2))
    assert first == again
    assert unpack(first, "x") == b"on host-1"


def test_the_kernels_messages_are_left_out():
    hide = anonymous()
    assert hide.path("evidence/b01/db7/c/client.host.dmesg.txt") == ""
    assert hide.path("evidence/b01/db7/c/host.cpu.txt") == "evidence/b01/host-1/c/host.cpu.txt"
    assert hide.left_out == {"client.host.dmesg.txt"}
