"""Dumps of the results database of pgbent with its table of systems; figures are made up for these tests."""

from __future__ import annotations

from pgstrata.importers.formats import FORMATS
from pgstrata.importers.results import ReadingTerms

TESTS = """\
COPY public.tests (server, test, set, clients, script, tps, end_time, server_cpu) FROM stdin;
rising\t1\t1\t8\tselect\t900.5\t2026-01-01 10:01:00\tM1 Max
siren\t1\t1\t8\tselect\t800.5\t2026-01-01 11:01:00\t\\N
\\.
"""
SYSTEMS = """\
COPY public.server (server, server_info, server_cpu, server_mem, server_num_proc, server_details) FROM stdin;
siren\tin the rack\tR5\t124 GB\t12\t{"board": "x"}
rising\ta laptop\tM1\t\\N\t10\t{}
\\.
"""


def read(text):
    return FORMATS["pgbent"].read(text, ReadingTerms())


def test_what_the_table_of_systems_says_of_a_server_is_said_of_its_tests():
    for text in (TESTS + SYSTEMS, SYSTEMS + TESTS):
        rising, siren = (each.said for each in read(text).results)
        # what the test itself says of its server is newer
        assert (rising["server_cpu"], rising["server_info"], rising["server_num_proc"]) == ("M1 Max", "a laptop", "10")
        assert (siren["server_cpu"], siren["server_mem"]) == ("R5", "124 GB")
        assert "server_mem" not in rising
        assert "server_details" not in siren


def test_a_dump_with_systems_but_without_their_names_is_read_as_before():
    nameless = SYSTEMS.replace("(server, ", "(name, ")
    assert "server_info" not in read(TESTS + nameless).results[0].said


def test_the_table_of_systems_alone_has_no_results():
    found = read("server,server_info,server_cpu\na,x,R5\n")
    assert found.unusable == ((1, "this is only the table of systems: import a dump with the table `tests`"),)


def test_a_dump_with_inserts_says_how_to_write_it():
    found = read("INSERT INTO public.tests VALUES ('a', 1, 900.5);\n")
    assert found.unusable == ((1, "the dump has INSERT commands: write it without --inserts and --column-inserts"),)


def test_the_table_of_submissions_is_read_where_there_is_none_of_tests():
    text = (
        "COPY public.submission (submit_id, server, test, batch, run, cpu, clients, tps, fsync, shared_gb) FROM stdin;\n"
        "1\ta\t7\tSockets\t2026/01/02\tR5\t8\t900.5\ton\t4.0\n2\ta\t8\tSockets\t2026/01/02\tR5\t8\t0\toff\t4.0\n\\.\n"
    )
    found = read(text)
    (result,) = found.results
    assert (result.measurements["tps"], result.started.day) == (900.5, 2)
    # tests of one batch that differ in a setting are no repeats
    assert (result.said["fsync"], result.said["shared_gb"]) == ("on", "4.0")
    assert found.unusable == ((3, "test 8 has no throughput"),)
