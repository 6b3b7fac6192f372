"""Versions, numbers and names in the order in which people expect them."""

import time

import pytest

from pgstrata.model.levels import order_by_number, sort_levels


@pytest.mark.parametrize(
    ("name", "levels"),
    [
        ("kernel", ("2.6.39", "3.9", "3.10-rc1", "3.10", "4.7")),
        ("server", ("9.6beta1", "9.6rc1", "9.6", "9.6.1", "10", "18rc1", "18", "19devel")),
        ("kernel", ("6.1.0-9-amd64", "6.1.0-18-amd64", "6.12.9+bpo-amd64")),
        ("server", ("pg-9.6beta1", "pg-9.6", "pg-10")),
        ("version", ("8.3RC2", "8.3", "8.3.1", "9.5alpha1", "9.5.0", "17Beta1", "17RC1", "17.0")),
        ("tag", ("REL8_3_RC2", "REL8_3_0", "REL9_6_BETA1", "REL9_6_24", "REL_17_BETA1", "REL_17_2", "REL_17_10")),
        ("tag", ("REL9_6_24", "REL_17_0", "REL_17_STABLE", "REL_18_0")),
        ("tag", ("REL_17_BETA2", "REL_17_RC1", "REL_17_0")),
        ("kernel", ("6.7.0-rc3", "6.7.0-rc3-00012-gabc1234", "6.7.0-rc10+", "6.7.0", "6.7.0-12-gabc1234")),
        ("clients", ("1", "4", "16", "128")),
        ("fill", ("0.25", "0.5", "1")),
        ("buffers", ("128MB", "1GB")),
        ("machine", ("m5.2xlarge", "m5.16xlarge", "m6.2xlarge")),
        ("machine", ("x07a", "x7a", "x7b", "x10a")),
        ("machine", ("a2b", f"a{'9' * 4999}b", f"a{'9' * 5000}b")),
    ],
)
def test_levels_are_sorted_whatever_order_they_come_in(name, levels):
    assert sort_levels(name, levels) == sort_levels(name, levels[::-1]) == levels


def test_a_build_with_a_word_behind_it_is_no_release():
    assert order_by_number(("14", "16-patched", "18")) == ()


@pytest.mark.parametrize("level", [f"1-1-a{'+deb' * 30_000}!", f"1{'.1' * 60_000}!", f"REL1{'_1' * 60_000}!"])
def test_a_level_of_any_length_is_sorted_in_linear_time(level):
    begun = time.process_time()
    assert sort_levels("server", (level, "2"))
    assert time.process_time() - begun < 5
