"""`pgstrata decide` as a user meets it: answers, exit codes, and what is said about a file that cannot be used."""

import json
import math
import subprocess
import sys

import pytest

from program import pgstrata

NOISE = (0.01, -0.012, 0.004, -0.003, 0.008, -0.006, 0.002, 0.011, -0.009, 0.005, -0.001, 0.007)


def table(levels, n=12, separator=","):
    lines = [separator.join(("block", "environment", "value"))]
    for block in range(n):
        for place, (name, level) in enumerate(levels.items()):
            value = level * math.exp(NOISE[(block * (place + 1) + place) % 12])
            lines.append(separator.join((str(block), name, f"{value:.6g}")))
    return "\n".join(lines) + "\n"


FASTER, SLOWER, SAME = (table({"main": 1000, "change": level}) for level in (1100, 900, 1000))


def decide(place, text, *arguments, file="results.csv", **more):
    if text is not None:
        (place / "results.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    return pgstrata(place, "decide", file, *arguments, **more)


# every other block is 30 % faster
TWO_KINDS = "block,environment,value\n" + "".join(
    f"{block},{name},{1000 * (1.3 if name == 'change' and block % 2 else 1) * math.exp(NOISE[(block * 5 + place) % 12])}\n"
    for block in range(16)
    for place, name in enumerate(("main", "change"))
)


@pytest.mark.parametrize(
    ("text", "arguments", "code", "first"),
    [
        (FASTER, (), 0, "The value of change is higher than that of main, which is better: "),
        (FASTER, ("--metric", "tps"), 0, "change is faster than main: "),
        (FASTER, ("--lower-is-better",), 1, "The value of change is higher than that of main, which is worse: "),
        (FASTER, ("--metric", "latency_p95"), 1, "change is slower than main: "),
        (FASTER, ("--baseline", "change"), 1, "The value of main is lower than that of change, which is worse: "),
        (SLOWER, (), 1, "The value of change is lower than that of main, which is worse: "),
        (SLOWER, ("--threshold", "30%"), 0, "The value of change is lower than that of main, which is worse, but by less than 30 %"),
        (SAME, (), 0, "No difference larger than 3 % between change and main: "),
        (TWO_KINDS, (), 0, "The value of change is higher than that of main, which is better: "),
        (SAME, ("--threshold", "0.1 %"), 3, "change and main cannot be told apart"),
        (table({"main": 1, "change": 2}, n=3), (), 3, "Too few blocks to compare change with main: 3 usable blocks"),
        (SAME, ("--sequential",), 0, "No difference larger than 3 % between change and main: "),
        (table({"a": 1, "main": 2}, separator=";").encode("utf-8-sig"), (), 1, "The value of a is lower than that of main"),
        ("environment,value\n1,1\n1,2\n1,3\n2,11\n2,12\n2,13\n", (), 3, "Too few values to compare 2 with 1: 3 against 3, "),
        ("environment,value\n2,11\n2,12\n2,13\n2,14\n1,1\n1,2\n1,3\n1,4\n", (), 0, "The value of 2 is higher"),
        (SLOWER.replace("main", "one").replace("change", "two") + "0,three,1\n", ("--baseline", "one"), 1, "The value of two is lower"),
    ],
)  # fmt: skip
def test_the_answer_comes_first_and_the_exit_code_is_a_gates(tmp_path, text, arguments, code, first):
    done = decide(tmp_path, text, *arguments)
    assert (done.returncode, done.stderr) == (code, "")
    assert " ".join(done.stdout.split()).startswith(first)


def test_standard_input_is_read_where_the_file_is_a_dash(tmp_path):
    done = decide(tmp_path, None, "--json", file="-", input=SLOWER)
    assert done.returncode == 1, done.stderr
    document = json.loads(done.stdout)
    assert (document["source"], document["comparisons"][0]["verdict"]) == ("standard input", "worse")


@pytest.mark.parametrize(
    ("text", "arguments", "said"),
    [
        (None, (), "results.csv: there is no such file\n  -> name a file of results, or - for standard input"),
        (b"environment,value\nB\xe9b\xe9,1\n", (), "results.csv:2: the file is not UTF-8: "),
        (FASTER.encode("utf-16"), (), "results.csv:1: the file is not UTF-8: "),
        ("", (), "results.csv: the file is empty\n  -> begin with a header: block,environment,value"),
        (f"{FASTER}12,main,NaN\n", (), "results.csv:26: column value: 'NaN' is not a result\n  -> leave out the whole row"),
        (f"{FASTER}12,main,fast\n", (), "results.csv:26: column value: 'fast' is not a number\n  -> "),
        (f"{FASTER}3,main,1000\n", (), "results.csv:26: block 3, environment main is in line 8 already\n  -> "),
        ("environment,metric,value\na,x,1\nb,y,1\n", (), "results.csv: the file mixes 2 metrics: x, y\n  -> choose one, such as --metric x"),
        ("environment,value\na,1\n", (), "results.csv: a is the only environment"),
        (FASTER.replace("main", "it"), (), "results.csv: nothing says which environment the others are to be compared with\n  -> name it, such as --baseline it; there are it, change"),
        (table({"a": 1, "b": 1}, n=61), ("--sequential", "--baseline", "a"), "--sequential: looks after each block end at 60 blocks, and there are 61"),
        ("environment,value\nbase,1\nb,1\n", ("--sequential",), "results.csv: looks after each block need blocks"),
        (FASTER, ("--baseline", "mian"), "--baseline: results.csv has no environment 'mian'\n  -> choose one of main, change"),
        (FASTER, ("--metric", "tps", "--lower-is-better"), "--lower-is-better: tps is throughput, and higher values"),
        (FASTER, ("--threshold", "3"), "--threshold: a threshold of 300 % makes no sense\n  -> write one between"),
        (FASTER, ("--threshold", "small"), "--threshold: 'small' is not a ratio"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_named_with_its_place_and_a_remedy(tmp_path, text, arguments, said):
    done = decide(tmp_path, text, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"pgstrata: {said}")
    assert "  -> " in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_is_no_file(tmp_path):
    done = decide(tmp_path, None, file=".")
    assert (done.returncode, done.stderr) == (
        2,
        "pgstrata: .: the file cannot be read: Is a directory\n  -> name the file in it\n",
    )


def test_a_closed_standard_input_is_no_traceback(tmp_path):
    words = f"{sys.executable} -m pgstrata decide - <&-"
    done = subprocess.run(["bash", "-c", words], capture_output=True, text=True, timeout=60)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)


@pytest.mark.parametrize("arguments", [(), ("--json",)])
def test_a_gate_stays_shut_though_nobody_reads_on(tmp_path, arguments):
    # more than a pipe holds, so that writing fails
    cells = "\n".join(
        f"{b},{n},{v},{'cell' * 20}{c}" for b in range(9) for n, v in (("a", 2), ("b", 1)) for c in range(300)
    )
    (tmp_path / "results.csv").write_text(f"block,environment,value,cell\n{cells}\n")
    words = (
        f"set -o pipefail; {sys.executable} -m pgstrata decide results.csv --baseline a {' '.join(arguments)} | true"
    )
    done = subprocess.run(["bash", "-c", words], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (1, "")


def test_an_answer_that_the_disk_does_not_take_is_no_pass(tmp_path):
    (tmp_path / "results.csv").write_text(FASTER)
    words = f"{sys.executable} -m pgstrata decide results.csv > /dev/full"
    done = subprocess.run(["bash", "-c", words], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 4


STAIRS = table({"14": 1000, "15": 1000, "16": 1060, "17": 1060})


def test_ordered_environments_say_which_level_brought_the_change(tmp_path):
    done = decide(tmp_path, STAIRS, "--ordered", "--metric", "tps")
    said = " ".join(done.stdout.split())
    assert done.returncode == 0, done.stderr
    assert "Along the environments: 16 brought +" in said
    assert "throughput (better, p = 0.00027), over 12 blocks" in said
    assert "Ordered as they first appear in the file: 14, 15, 16, 17; steps by permutation within blocks" in said
    assert max(map(len, done.stdout.splitlines())) <= 78


def test_a_step_back_that_stays_above_the_baseline_fails_nothing_and_is_called_worse(tmp_path):
    done = decide(tmp_path, table({"14": 1000, "15": 1200, "16": 1100}), "--ordered")
    said = " ".join(done.stdout.split())
    assert done.returncode == 0, done.stderr
    assert "16 brought -" in said
    assert "(worse, p = " in said


def history(*, dip=1.0, after=1.0):
    """A value for each of 173 releases, as a project keeps them."""
    values = [
        1000 * math.exp(NOISE[n * 5 % 12]) * (after if n >= 80 else 1) * (dip if n in {40, 41} else 1)
        for n in range(173)
    ]
    return "environment,value\n" + "".join(f"r{n},{value:.6g}\n" for n, value in enumerate(values))


@pytest.mark.parametrize(("after", "code"), [(0.87, 1), (1.15, 0), (1.0, 0)])
def test_of_a_history_of_173_releases_the_step_is_told_first_and_decides(tmp_path, after, code):
    done = decide(tmp_path, history(after=after), "--ordered")
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (code, "")
    assert lines[0].startswith(
        "Along the environments: r80 brought " if after != 1 else "Along the environments from r0"
    )
    assert len(lines) <= 60
    assert "Too few values to compare r1, r2, r3, r4 and 168 more with r0: 1 against 1" in " ".join(done.stdout.split())
    assert "Measured only once, so its scatter is unknown: r0, r1, r2 and 170" in " ".join(done.stdout.split())


def test_of_a_level_that_dips_and_recovers_both_edges_are_told(tmp_path):
    levels = {"14": 25_000, "15": 25_420, "16": 7_741, "17": 37_547, "18": 37_600}
    done = decide(tmp_path, table(levels, n=3), "--ordered")
    said = " ".join(done.stdout.split())
    assert said.startswith("Along the environments: 16 brought -69")
    assert ", 17 brought +39" in said
    assert done.returncode == 1, "a step is worse, and no headline has blocks enough"


def test_ordered_steps_are_in_the_document_and_other_fields_stay(tmp_path):
    plain = json.loads(decide(tmp_path, STAIRS, "--json").stdout)
    ordered = json.loads(decide(tmp_path, STAIRS, "--json", "--ordered").stdout)
    (axis,) = ordered["axes"]
    assert (axis["factor"], axis["cell"], axis["levels"]) == ("environment", "all", ["14", "15", "16", "17"])
    assert [step["after"] for step in axis["steps"]] == ["16"]
    assert {**ordered, "axes": []} == plain


def test_two_environments_are_no_ordered_axis(tmp_path):
    done = decide(tmp_path, FASTER, "--ordered")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--ordered: an ordered axis takes 3 environments or more, and results.csv has 2: main, change" in done.stderr


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (table({"14": 1000, "15": 1000, "16": 1060}, n=2), "too few blocks for any step, the clearest one in 2 blocks has p ="),
        ("environment,value\n" + "".join(f"{e},{v}\n" for e in "abc" for v in (1, 2, 3)), "no step stands out (p = 1), without"),
        ("environment,value\na,1\nb,2\nc,3\n", "too few values for any step, the clearest one in so few values has p = "),
    ],
)  # fmt: skip
def test_where_no_step_is_found_it_is_said_whether_one_could_have_been(tmp_path, rows, said):
    assert said in " ".join(decide(tmp_path, rows, "--ordered").stdout.split())


def test_declared_values_are_refused_also_as_an_export(tmp_path):
    rows = "".join(
        f"{block},{name},synthetic,{value}\n" for block in range(9) for name, value in (("a", 1000), ("b", 910))
    )
    done = decide(tmp_path, f"block,environment,metric,value\n{rows}", "--baseline", "a")
    assert done.returncode == 2
    assert "declared under [synthetic], not measured" in done.stderr
