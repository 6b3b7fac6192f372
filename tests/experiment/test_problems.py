"""Bad files: each problem has the right line, key and remedy."""

from __future__ import annotations

import pytest

CELL = '[[cells]]\nworkload = "select-only"\nscale = 1\nclients = 2\n'
TWO = '[factors]\nserver = ["16", "18"]\n'

CASES = {
    "a misspelt key at the top": ('treshold = "3 %"\n' + TWO + CELL, 1, "treshold", "threshold"),
    "a misspelt table": (TWO + CELL + "[[cell]]\nscale = 1\n", 7, "cell", "cells"),
    "a key in the wrong table": (TWO + "clients = 2\n" + CELL, 3, "factors.clients", "[[cells]]"),
    "a key of environments in a file without any": (
        TWO + CELL + 'price = "1 USD"\n',
        7,
        "cells[1].price",
        "it belongs under [[environments]]",
    ),
    "a top-level key below a table": (TWO + CELL + "seed = 2\n", 7, "cells[1].seed", "before the first table"),
    "a setting without its prefix": (
        '[factors]\nwork_mem = ["1MB", "2MB"]\n' + CELL,
        2,
        "factors.work_mem",
        '"settings.work_mem"',
    ),
    "a level with swapped digits": ('[factors]\nserver = ["61", "18"]\n' + CELL, 2, "factors.server[1]", "'16'"),
    "a misspelt level": ('[factors]\nserver = ["embeded", "18"]\n' + CELL, 2, "factors.server[1]", "'embedded'"),
    "a level of a list on several lines": (
        '[factors]\nserver = [\n  "16",\n  "81",\n]\n' + CELL,
        4,
        "factors.server[2]",
        "'18'",
    ),
    "a version that is too old": ('[factors]\nserver = ["12", "18"]\n' + CELL, 2, "factors.server[1]", "maven:12"),
    "a minor version": ('[factors]\nserver = ["16.3", "18"]\n' + CELL, 2, "factors.server[1]", "'16'"),
    "a misspelt kind of server": (
        '[factors]\nserver = ["prefx:/a", "/b"]\n' + CELL,
        2,
        "factors.server[1]",
        "prefix:/a",
    ),
    "a source without a path": ('[factors]\nserver = ["build:", "/b"]\n' + CELL, 2, "factors.server[1]", "configure"),
    "a compiler for a server that is ready": (
        '[factors]\nserver = ["17", "18"]\nbuild.compiler = ["gcc", "clang"]\n' + CELL,
        2,
        "factors.server",
        "build:DIR",
    ),
    "what is no compiler": (
        '[common]\nserver = "build:/src"\n[factors]\nbuild.compiler = ["gcc -O2", "clang"]\n' + CELL,
        4,
        "factors.build.compiler[1]",
        "gcc-12",
    ),
    "a version that Maven lacks": (
        '[factors]\nserver = ["maven:9.5", "/b"]\n' + CELL,
        2,
        "factors.server[1]",
        "9.6, 10",
    ),
    "a minor version of Maven's": (
        '[factors]\nserver = ["maven:13.4", "/b"]\n' + CELL,
        2,
        "factors.server[1]",
        "maven:13'",
    ),
    "servers of two suppliers": (
        '[factors]\nserver = ["maven:13", "18"]\n' + CELL,
        2,
        "factors.server",
        "mixed_suppliers",
    ),
    "a boolean as server": ('[factors]\nserver = [true, "18"]\n' + CELL, 2, "factors.server[1]", "embedded"),
    "one level twice": ('[factors]\nserver = ["18", 18]\n' + CELL, 2, "factors.server", "controls"),
    "one size in two spellings": (
        '[factors]\n"settings.work_mem" = ["1GB", "1024MB"]\n' + CELL,
        2,
        "factors.settings.work_mem",
        "take one out",
    ),
    "an empty factor": ("[factors]\nserver = []\n" + CELL, 2, "factors.server", '["16", "18"]'),
    "a factor that is no list": ('[factors]\nserver = "18"\n' + CELL, 2, "factors.server", '["16", "18"]'),
    "a factor with one level": ('[factors]\nserver = ["18"]\n' + CELL, 2, "factors.server", "controls"),
    "nothing that varies": (CELL, None, "factors", "controls"),
    "no cells": (TWO, None, "cells", "[[cells]]"),
    "a cell without a workload": (TWO + "[[cells]]\nscale = 1\nclients = 1\n", 3, "cells[1].workload", "simple-update"),
    "a cell without a scale": (
        TWO + '[[cells]]\nworkload = "select-only"\nclients = 1\n',
        3,
        "cells[1].scale",
        "scale = 10",
    ),
    "a cell without clients": (
        TWO + '[[cells]]\nworkload = "select-only"\nscale = 1\n',
        3,
        "cells[1].clients",
        "clients = ",
    ),
    "one table instead of a list of tables": (TWO + "[cells]\nscale = 1\n", 3, "cells", "[[cells]]"),
    "scale 0": (TWO + CELL.replace("scale = 1", "scale = 0"), 5, "cells[1].scale", "integer from 1 to"),
    "a scale in quotes": (TWO + CELL.replace("scale = 1", 'scale = "1"'), 5, "cells[1].scale", "integer"),
    "clients 0": (TWO + CELL.replace("clients = 2", "clients = [1, 0]"), 6, "cells[1].clients", "integer from 1 to"),
    "clients twice": (TWO + CELL.replace("clients = 2", "clients = [4, 4]"), 6, "cells[1].clients", "take one"),
    "a sweep that goes down": (
        TWO + CELL.replace("clients = 2", "clients = { from = 8, to = 1, steps = 3 }"),
        6,
        "cells[1].clients",
        "larger",
    ),
    "a sweep without steps": (
        TWO + CELL.replace("clients = 2", "clients = { from = 1, to = 8 }"),
        6,
        "cells[1].clients",
        "steps = 7",
    ),
    "a misspelt shape": (
        TWO + CELL.replace("clients = 2", 'clients = { from = 1, to = 8, steps = 4, shape = "linaer" }'),
        6,
        "cells[1].clients",
        "linear",
    ),
    "more threads than clients": (TWO + CELL + "threads = 4\n", 7, "cells[1].threads", "auto"),
    "a run without a unit": (TWO + CELL + 'run = "60"\n', 7, "cells[1].run", '"60s"'),
    "a run as a number": (TWO + CELL + "run = 60\n", 7, "cells[1].run", '"60s"'),
    "a run of half a second": (TWO + CELL + 'run = "500ms"\n', 7, "cells[1].run", '"60s"'),
    "a bad warm-up": (TWO + CELL + 'warmup = "soon"\n', 7, "cells[1].warmup", '"60s"'),
    "a misspelt protocol": (TWO + CELL + 'protocol = "prepard"\n', 7, "cells[1].protocol", "prepared"),
    "a negative rate": (TWO + CELL + "rate = -1\n", 7, "cells[1].rate", "500"),
    "a misspelt workload": (TWO + CELL.replace("select", "selct"), 4, "cells[1].workload", "select-only"),
    "custom without scripts": (TWO + CELL.replace("select-only", "custom"), 3, "cells[1].scripts", "script.sql"),
    "a built-in workload with scripts": (
        TWO + CELL + 'scripts = [{ file = "mine.sql" }]\n',
        4,
        "cells[1].workload",
        "take out scripts",
    ),
    "a script that is not there": (
        TWO + '[[cells]]\nscale = 1\nclients = 1\nscripts = [\n  { file = "mine.sql" },\n  { file = "gone.sql" },\n]\n',
        8,
        "cells[1].scripts[2].file",
        "relative to the experiment file",
    ),
    "a script without a file": (
        TWO + "[[cells]]\nscale = 1\nclients = 1\nscripts = [{ weight = 1 }]\n",
        6,
        "cells[1].scripts[1]",
        "file =",
    ),
    "an empty script": (
        TWO + '[[cells]]\nscale = 1\nclients = 1\nscripts = [{ file = "empty.sql" }]\n',
        6,
        "cells[1].scripts[1].file",
        "transaction",
    ),
    "a weight of 0": (
        TWO + '[[cells]]\nscale = 1\nclients = 1\nscripts = [{ file = "mine.sql", weight = 0 }]\n',
        6,
        "cells[1].scripts[1].weight",
        "at least 1",
    ),
    "an option that nothing reads": (
        TWO + CELL + "[cells.options]\nwidth = 1\n",
        8,
        "cells[1].options.width",
        "scripts",
    ),
    "a factor that nothing reads": (
        '[factors]\n"options.width" = [1, 2]\n' + CELL,
        2,
        "factors.options.width",
        "scripts",
    ),
    "one cell twice": (TWO + CELL + CELL, 7, "cells[2]", "take one"),
    "no blocks": ("blocks = 0\n" + TWO + CELL, 1, "blocks", "from 1 to 60"),
    "too many blocks": ("blocks = 61\n" + TWO + CELL, 1, "blocks", "from 1 to 60"),
    "an unknown metric": ('metric = "tsp"\n' + TWO + CELL, 1, "metric", "'tps'"),
    "a threshold in words": ('threshold = "little"\n' + TWO + CELL, 1, "threshold", "3 %"),
    "a threshold of 300 %": ("threshold = 3\n" + TWO + CELL, 1, "threshold", "3 %"),
    "a bad budget": ('budget = "ten minutes"\n' + TWO + CELL, 1, "budget", "10m"),
    "a baseline that is not there": ('baseline = { server = "17" }\n' + TWO + CELL, 1, "baseline.server", "16"),
    "a baseline of no factor": ('baseline = { sever = "16" }\n' + TWO + CELL, 1, "baseline.sever", "'server'"),
    "an unknown way": ('interleave = "slice"\n' + TWO + CELL, 1, "interleave", "'slices'"),
    "a misspelt control": ('controls = ["smae"]\n' + TWO + CELL, 1, "controls[1]", "same"),
    "a way to connect that there is not": (
        '[factors]\nconnection = ["tcp", "ssl"]\n' + CELL,
        2,
        "factors.connection[2]",
        "socket, tcp, tls",
    ),
    "pages of a size that there is not": ('[factors]\npages = ["4kB", "3MB"]\n' + CELL, 2, "factors.pages[2]", "'2MB'"),
    "a level of a layer without such a key": (
        '[factors]\n"cpu.governer" = ["a", "b"]\n' + CELL,
        2,
        "factors.cpu.governer",
        "'cpu.governor'",
    ),
    "a CPU that no Linux has": (TWO + '[common.cpu]\nserver = "0-8192"\n' + CELL, 4, "common.cpu.server", "0 to 8191"),
    "a CPU number without end": (
        TWO + '[common.cpu]\nserver = "0-9999999999"\n' + CELL,
        4,
        "common.cpu.server",
        '"0-3"',
    ),
    "a CPU list that runs backwards": (TWO + '[common.cpu]\nserver = "3-0"\n' + CELL, 4, "common.cpu.server", '"0-3"'),
    "a memory limit without a unit": (
        TWO + '[common.limits]\nmemory = "4 gigs"\n' + CELL,
        4,
        "common.limits.memory",
        "4GB",
    ),
    "a sysctl that leaves its folder": (
        TWO + '[common.sysctl]\n"vm/../../x" = 1\n' + CELL,
        4,
        "common.sysctl.vm/../../x",
        "vm.swappiness",
    ),
    "a layer beneath a running server": (
        '[factors]\nserver = ["dsn:a", "dsn:b"]\nthp = ["always", "never"]\n' + CELL,
        3,
        "factors.thp",
        "take it out",
    ),
    "a misspelt key of builds": (
        '[factors]\nbuild.flag = ["-O2", "-O3"]\n' + CELL,
        2,
        "factors.build.flag",
        "build.flags",
    ),
    "a setting that pgstrata needs": (
        TWO + "[common.settings]\nport = 1\n" + CELL,
        4,
        "common.settings.port",
        "take it",
    ),
    "a list as a setting": (TWO + "[common.settings]\na = [1]\n" + CELL, 4, "common.settings.a", "[factors]"),
    "a name that is no setting": (
        TWO + '[common.settings]\n"a b" = 1\n' + CELL,
        4,
        "common.settings.a b",
        "postgresql.conf",
    ),
    "checksums through initdb": (
        TWO + "[common.initdb]\ndata-checksums = true\n" + CELL,
        4,
        "common.initdb.data-checksums",
        "checksums = true",
    ),
    "a common value beneath a factor": ('[common]\nserver = "17"\n' + TWO + CELL, 2, "common.server", "take out one"),
    "two factors on one setting": (
        '[factors]\n"settings.jit" = ["on", "off"]\n[factors.settings.a]\njit = "on"\n[factors.settings.b]\n' + CELL,
        4,
        "factors.settings.a.jit",
        "one of the two",
    ),
    "factors beside a list": (
        TWO + '[[environments]]\nname = "a"\n[[environments]]\nname = "b"\n' + CELL,
        3,
        "environments",
        "keep one",
    ),
    "an environment without a name": (
        '[[environments]]\nserver = "16"\n[[environments]]\nname = "b"\nserver = "18"\n' + CELL,
        1,
        "environments[1].name",
        "name =",
    ),
    "a name twice": (
        '[[environments]]\nname = "a"\nserver = "16"\n[[environments]]\nname = "a"\nserver = "18"\n' + CELL,
        5,
        "environments[2].name",
        "another name",
    ),
    "suppliers that differ": ('[factors]\nserver = ["18", "/opt/pg"]\n' + CELL, 2, "factors.server", "mixed_suppliers"),
    "a setting of a running server": (
        '[factors]\nserver = ["dsn:a", "dsn:b"]\n"settings.work_mem" = ["1MB", "2MB"]\n' + CELL,
        3,
        "factors.settings.work_mem",
        "take it out",
    ),
    "a restart of another server": (
        '[factors]\nserver = ["dsn:staging", "dsn:b"]\n' + CELL + '[restart]\n"dsn:stagin" = "x"\n',
        7,
        "restart",
        "did you mean 'dsn:staging'?",
    ),
    "a restart of a server that is kept": (
        'reset = "none"\n[factors]\nserver = ["dsn:a", "dsn:b"]\n' + CELL + '[restart]\n"dsn:a" = "x"\n',
        8,
        "restart",
        'reset = "restart"',
    ),
    "a restart of a server that is not running": (TWO + CELL + '[restart]\n"18" = "x"\n', 7, "restart", "take it out"),
    "half a command": (
        '[factors]\nserver = ["dsn:a", "dsn:b"]\n' + CELL + '[restart]\n"dsn:a" = \'say "x\'\n',
        7,
        "restart",
        "as on a command line",
    ),
    "common settings of a running server": (
        '[factors]\nserver = ["dsn:a", "dsn:b"]\n[common.settings]\njit = "off"\n' + CELL,
        3,
        "common.settings",
        "take it out",
    ),
    "a value that is no string": (TWO + CELL + "[allow]\nmixed_suppliers = 1\n", 8, "allow.mixed_suppliers", "true or"),
    "a table that is a number": ("allow = 1\n" + TWO + CELL, 1, "allow", "[allow]"),
    "a key twice": ("seed = 1\nseed = 2\n" + TWO + CELL, 2, "", "once"),
    "a value without quotes": ("question = why\n" + TWO + CELL, 1, "", "quotes"),
    "a bracket that is never closed": ('[factors]\nserver = ["16"\n', 2, "", "quotes"),
}


@pytest.mark.parametrize("case", CASES)
def test_it_is_reported_with_line_key_and_remedy(problems, case):
    text, line, key, remedy = CASES[case]
    found = problems(text)
    assert [(problem.line, problem.key) for problem in found] == [(line, key)], found
    assert remedy in found[0].remedy
    assert found[0].what


@pytest.mark.parametrize(
    ("text", "key", "what"),
    [
        ("seed = " + "9" * 5000, "", "too many digits"),
        ("a = " + "[" * 5000 + "]" * 5000, "", "nested too deeply"),
        (f"seed = {2**63}", "seed", "64 bits"),
        (f"allow = {{ a = [{-(2**63) - 1}] }}", "allow.a[1]", "64 bits"),
        ("a" + ".a" * 40 + " = 1", "a", "nested too deeply"),
    ],
)
def test_what_could_not_be_counted_or_shown_is_refused_before_anything_else(problems, text, key, what):
    (found,) = problems(text + "\n" + TWO + CELL)
    assert found.key == key
    assert what in found.what
    assert found.remedy


def test_what_would_never_end_is_refused_with_its_number(problems):
    factors = "".join(f'"settings.a.b{number}" = ["1", "2"]\n' for number in range(40))
    (found,) = problems(f"[factors]\n{factors}{CELL}")
    assert (found.key, found.what) == ("factors", "too many environments: the levels combine to 1,099,511,627,776")
    many = ", ".join(map(str, range(1, 1001)))
    (found,) = problems(TWO + CELL.replace("clients = 2", f"clients = [{many}]"))
    assert (found.key, found.what) == ("cells[1]", "too many cells: 1,000 up to and including this table")


@pytest.mark.parametrize("text", ['run = "1e999s"', 'run = "9' + "9" * 400 + 'd"'])
def test_a_duration_without_end_is_refused(problems, text):
    (found,) = problems(TWO + CELL + text + "\n")
    assert found.key == "cells[1].run"


def test_all_problems_are_told_at_once_in_the_order_of_the_file(problems):
    found = problems(
        'treshold = 1\nblocks = 99\n[factors]\nserver = ["61", "18"]\npages = ["4"]\n'
        '[[cells]]\nworkload = "nothing-like-it"\nscale = 0\nclients = 0\nrun = "x"\nfoo = 1\n'
    )
    assert [problem.line for problem in found] == [1, 2, 4, 5, 7, 8, 9, 10, 11]


def test_a_second_cell_is_placed_in_its_own_lines(problems):
    (found,) = problems(TWO + CELL + CELL.replace("scale = 1", "scale = -1"))
    assert (found.line, found.key) == (9, "cells[2].scale")


def test_a_table_below_the_second_cell_is_placed_there(problems):
    text = TWO + CELL + "[cells.options]\n" + CELL.replace("scale = 1", "scale = 2") + "[cells.options]\nx = 1\n"
    (found,) = problems(text)
    assert (found.line, found.key) == (13, "cells[2].options.x")
