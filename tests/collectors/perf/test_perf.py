"""Stacks by perf: the real script on this machine, and what is made of what it writes."""

import shutil
import subprocess
import sys
import time
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgstrata.collectors.perf.sampler import PerfSampler, parse_folded
from pgstrata.errors import ParseError
from pgstrata.model.metrics import METRICS
from pgstrata.ports.collector import Window

FOLDER = files("pgstrata.collectors.perf")
WINDOW = Window(
    seconds=10.0,
    transactions=900,
    outside=100,
    client_cpu=2.0,
    postmaster_pid=100,
    transport_pids=(7,),
    server_version=180000,
)
TEXT = """\
# hertz 50
# ticks 12
# event cpu-clock:u
session;main;PostgresMain;exec_simple_query 60
session;main;PostgresMain 30
checkpointer;main 10
# whole
# count cycles:u 4000000
# count dTLB-load-misses:u 500
"""
SCRIPT = """\
@ 100 /srv/bin/postgres -D /data
@ 101 postgres: checkpointer
@ 102 postgres: bench postgres [local] SELECT
102
\t           4cd15f exec_simple_query (/srv/bin/postgres)
\t           16ff35 main (/srv/bin/postgres)

102
\t ffffffff81000000 do syscall;64 ([kernel.kallsyms])
\t           4cd15f exec_simple_query (/srv/bin/postgres)
\t           16ff35 main (/srv/bin/postgres)

101
\t           9584a0 [unknown] (/srv/lib/libz.so.1)
\t           9584a0 [unknown] ([unknown])

"""


def fold(text: str, least: float = 0.0) -> dict[str, int]:
    awk = ["awk", "-v", f"least={least}", (FOLDER / "fold.awk").read_text()]
    lines = subprocess.run(awk, input=text, capture_output=True, text=True, check=True).stdout.splitlines()
    return {stack: int(number) for stack, _, number in (line.rpartition(" ") for line in lines)}


def test_samples_are_folded_by_kind_of_process_and_stack():
    assert fold(SCRIPT) == {
        "session;main;exec_simple_query": 1,
        "session;main;exec_simple_query;do_syscall:64_[k]": 1,
        "checkpointer;[libz.so.1]": 1,
    }


def test_how_a_process_came_to_its_work_and_what_compilers_add_to_names_are_left_out():
    frames = ("exec_simple_query.part.0.cold", "PostgresMain", "ServerLoop.isra.0", "PostmasterMain", "main")
    whole, cut = ("".join(f"\t 1f {name} (/srv/bin/postgres)\n" for name in names) for names in (frames, frames[:3]))
    assert fold(f"7\n{whole}\n7\n{cut}\t 0 [unknown] ([unknown])\n\n") == {"session;PostgresMain;exec_simple_query": 2}


def test_rare_frames_are_cut_and_their_samples_kept():
    assert fold(SCRIPT, least=0.5) == {"session;main;exec_simple_query": 2, "checkpointer": 1}


def test_cpu_time_and_counters_per_transaction_count_what_was_between_slices():
    found = PerfSampler().parse({"perf.samples": TEXT.encode()}, WINDOW)
    values = {item.metric: item.value for item in found.measurements}
    assert values == pytest.approx({"sampled_cpu_per_tx": 0.002, "cycles_per_tx": 4000.0, "dtlb_misses_per_tx": 0.5})
    assert values.keys() <= METRICS.keys()
    assert parse_folded(TEXT.encode()).cpu == 0.12


def test_what_ended_early_or_is_lacking_gives_no_value():
    for text in (
        "# hertz 49\n# lacking perf is not installed\n",
        TEXT.replace("# whole", "# ended early\n# whole"),
        TEXT.replace("# whole\n", ""),
        "",
    ):
        assert PerfSampler().parse({"perf.samples": text.encode()}, WINDOW).measurements == ()
    assert parse_folded(b"# lacking perf is not installed\n").lacking == "perf is not installed"


def test_an_unknown_shape_is_an_error():
    for text in (
        b"session;main many\n",
        b"# count cycles lots\n",
        b"# hertz fast\n",
        b"# ticks ?\n",
        b"session;main " + b"9" * 400 + b"\n",
        b"session;main -1\n",
    ):
        with pytest.raises(ParseError):
            parse_folded(text)


@given(st.binary(max_size=300))
def test_no_bytes_do_anything_but_parse_or_fail_as_expected(text):
    try:
        folded = parse_folded(text)
    except ParseError:
        return
    assert all(isinstance(number, int) for number in folded.stacks.values())


PROGRAMS = "/usr/local/sbin:/usr/sbin:/usr/local/bin:/usr/bin:/bin"


def run_script(path: str, folder, seconds: float = 1.0) -> str:
    busy = subprocess.Popen([sys.executable, "-c", "while True: sum(range(100))"])
    script, fold_ = ((FOLDER / name).read_text() for name in ("perf.sh", "fold.awk"))
    argv = ["sh", "-c", script, "pgstrata-perf", str(busy.pid), "200", f"{folder}/perf.data", "50M", fold_]
    try:
        child = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env={"PATH": path, "HOME": str(folder)})
        time.sleep(seconds)
        child.terminate()
        said = child.communicate(timeout=30)[0]
    finally:
        busy.kill()
        busy.wait()
    assert child.returncode == 0
    return said


@pytest.mark.skipif(shutil.which("perf") is None, reason="perf is not installed")
def test_the_script_follows_a_process_and_leaves_nothing_behind(tmp_path):
    for seconds in (1.0, 5.0, 25.0):  # beside other work perf itself takes a while to start
        folded = parse_folded(run_script(PROGRAMS, tmp_path, seconds).encode())
        if folded.lacking or sum(folded.stacks.values()) > 10:
            break
    assert folded.hertz == 200
    assert folded.lacking or (folded.whole and sum(folded.stacks.values()) > 10)
    assert list(tmp_path.iterdir()) == []


def test_a_perf_that_is_no_program_of_the_system_is_not_run(tmp_path):
    """Without one of the system's the script says so and waits for its end."""
    fake = tmp_path / "bin" / "perf"
    fake.parent.mkdir()
    fake.write_text(f"#!/bin/sh\n: >{tmp_path}/ran\n")
    fake.chmod(0o755)
    folded = parse_folded(run_script(f"{fake.parent}:{PROGRAMS}", tmp_path).encode())
    assert not (tmp_path / "ran").exists()
    if shutil.which("perf", path="/usr/sbin:/usr/bin:/sbin:/bin") is None:
        assert folded.lacking == "perf is not installed"
