"""Values in files of the kernel."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgstrata.errors import ParseError
from pgstrata.model.kernel_files import parse_allowed_cpus, parse_cpu_list, parse_field, parse_meminfo


def test_fields_are_found_with_colon_and_without():
    assert parse_field("Name:\tx y\nCpus_allowed_list:\t0-1\n", "Cpus_allowed_list") == "0-1"
    assert parse_field("nr_periods 3\nnr_throttled 2\n", "nr_throttled") == "2"
    assert parse_field("nr_periods 3\n", "nr_throttled") == ""


def test_a_name_may_have_blanks_and_stands_alone():
    cpuinfo = "model\t\t: 85\nmodel name\t: Some CPU @ 2 GHz\nprocessor\t: 1\nmodel name\t: another\n"
    assert parse_field(cpuinfo, "model name") == "Some CPU @ 2 GHz"
    assert parse_field("oom_kill_disable 1\nunder_oom 0\noom_kill 2\n", "oom_kill") == "2"


def test_a_field_without_a_value_does_not_take_the_next_line():
    assert parse_field("microcode\t:\nflags\t: fpu\n", "microcode") == ""


def test_sizes_of_memory_are_in_bytes():
    text = "MemAvailable:   23260000 kB\nHugePages_Total:       7\nHugepagesize:       2048 kB\n"
    assert parse_meminfo(text, "Hugepagesize") == 2 * 1024**2
    assert parse_meminfo(text, "MemAvailable") == 23260000 * 1024
    assert parse_meminfo(text, "HugePages_Total") == parse_meminfo(text, "Hugetlb") == 0


def test_a_list_of_cpus_is_read_as_linux_writes_it():
    assert parse_cpu_list("0-3,8\n") == {0, 1, 2, 3, 8}
    assert parse_cpu_list("\n") == frozenset()
    with pytest.raises(ParseError):
        parse_cpu_list("0-x")


@given(st.frozensets(st.integers(0, 500)))
def test_single_cpus_are_a_list_too(cpus):
    assert parse_cpu_list(",".join(map(str, cpus))) == cpus


def test_a_process_may_use_the_cpus_that_its_status_lists():
    assert parse_allowed_cpus("Cpus_allowed:\t3\nCpus_allowed_list:\t0-1\n") == {0, 1}
    assert parse_allowed_cpus("Name:\tx\n") == frozenset()
