"""Logs and job results of HammerDB's TPROC-H, with figures made up for these tests."""

from __future__ import annotations

import json

import pytest

from pgstrata.importers.formats import FORMATS
from pgstrata.importers.results import ReadingTerms

ORDER = (14, 2, 9)
"""A set of three queries is as good as one of 22."""


def read(text):
    return FORMATS["hammerdb"].read(text, ReadingTerms())


def head(hour):
    return f"Hammerdb Log @ Fri Jul 05 {hour:02}:55:26 BST 2019\n+-+-+-+-+-+-+-+-+-+-\n"


def queries(user, seconds=2.5):
    return "".join(
        f"Vuser {user}:Executing Query {query} ({place} of 22)\nVuser {user}:query {query} completed in {seconds} seconds\n"
        for place, query in enumerate(ORDER, 1)
    )


def complete(user, seconds, mean, number=1):
    return (
        f"Vuser {user}:Completed {number} query set(s) in {seconds} seconds\n"
        f'Vuser {user}:Geometric mean of query times returning rows (22) is "{mean:.5f}"\n'
    )


def power(seconds=60, mean=2.5):
    return f"{queries(1)}{complete(1, seconds, mean)}Vuser 1:FINISHED SUCCESS\nALL VIRTUAL USERS COMPLETE\n"


def test_a_power_run_has_its_mean_its_time_and_each_query():
    found = read(head(8) + power())
    (result,) = found.results
    assert result.measurements == {
        "power": 1440, "query_geomean_seconds": 2.5, "query_set_seconds": 60, "query_02_seconds": 2.5,
        "query_09_seconds": 2.5, "query_14_seconds": 2.5,
    }  # fmt: skip
    assert result.said == {"users": "1", "queries": "22"}
    assert (result.started.hour, result.seconds, found.unusable) == (8, 60, ())
    assert found.lower == result.measurements.keys() - {"power"}


def test_of_several_users_the_slowest_one_counts():
    text = queries(1) + queries(2) + complete(2, 158, 6.5) + queries(3) + complete(1, 157, 9.0) + complete(3, 159, 7.2)
    (result,) = read(f"RUNNING - PostgreSQL TPROC-H\n{text}").results
    assert result.measurements == {"power": 500, "query_geomean_seconds": 7.2, "query_set_seconds": 159}
    assert result.said == {"database": "PostgreSQL", "users": "3", "queries": "22"}


def test_further_sets_of_a_run_are_told_apart_because_only_the_first_one_may_be_cold():
    text = queries(1, 5.0) + complete(1, 90, 5.0) + queries(1) + complete(1, 60, 2.5, number=2)
    first, second = read(head(8) + text).results
    assert (first.said["set"], first.measurements["power"], first.measurements["query_02_seconds"]) == ("1", 720, 5)
    assert (second.said["set"], second.measurements["power"]) == ("2", 1440)
    assert (second.started - first.started).total_seconds() == 90


@pytest.mark.parametrize("between", ["", head(9), "RUNNING - PostgreSQL TPC-H\n"])
def test_runs_follow_each_other_in_a_log(between):
    found = read(head(8) + power(60) + between + power(61, 2.0))
    assert [each.measurements["query_set_seconds"] for each in found.results] == [60, 61]
    assert found.unusable == ()


def test_runs_of_a_log_without_any_line_between_them_are_told_apart():
    bare = queries(1) + complete(1, 60, 2.5)
    assert [each.said for each in read(bare * 3).results] == [{"users": "1", "queries": "22"}] * 3


def test_a_run_in_which_a_user_did_not_complete_its_queries_has_no_result():
    text = queries(1) + queries(2) + complete(1, 60, 2.5)
    found = read(head(8) + text + head(9) + power())
    assert len(found.results) == 1
    assert found.unusable == ((3, "the run did not finish: the queries of virtual user 2 are not complete"),)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("Vuser 1:FINISHED FAILED", "virtual user 1 failed before the run had a result"),
        ("Vuser 1:Query Failed : select 1 : timeout", "a query of virtual user 1 failed, so the mean covers only the others"),
    ],
)  # fmt: skip
def test_a_run_in_which_something_failed_has_no_result(line, what):
    found = read(f"{queries(1)}{line}\n{complete(1, 60, 2.5)}")
    assert (found.results, found.unusable) == ((), ((1, what),))


def test_a_log_of_a_version_without_means_has_the_time_of_the_set():
    (result,) = read(queries(1) + "Vuser 1:Completed 1 query set(s) in 60 seconds\n").results
    assert (result.measurements["query_set_seconds"], "power" in result.measurements) == (60, False)


def job(*means, seconds=(60, 61)):
    """The result of a job: means of all users in one text, and their sets in another one."""
    told = " ".join(f'{{Geometric mean of query times returning rows (22) is "{mean:.5f}"}}' for mean in means)
    sets = " ".join(f"{{Completed 1 query set(s) in {each} seconds}}" for each in seconds[: len(means)])
    return json.dumps(["6A7E2CDBC7F603E293439383", "2026-08-13 20:45:15", told, sets], indent=2)


def test_the_results_of_jobs():
    found = read(f"{job(2.5)}\n{job(4.0, 3.0)}\n")
    assert [each.measurements for each in found.results] == [
        {"power": 1440, "query_geomean_seconds": 2.5, "query_set_seconds": 60},
        {"power": 1200, "query_geomean_seconds": 3.0, "query_set_seconds": 61},
    ]
    assert [(each.said["users"], each.started.hour) for each in found.results] == [("1", 20), ("2", 20)]


def test_the_result_of_a_job_below_the_log_of_its_run_is_no_repeat():
    assert len(read(f"{power()}HAMMERDB RESULT\n{job(2.5)}\n").results) == 1
    assert len(read(f"{power()}{job(3.5)}\n").results) == 2
    assert len(read(f"{job(2.5)}\n{job(2.5)}\n").results) == 2


def test_the_whole_output_of_a_job_names_the_user_in_the_line_before():
    said = [line for user in (1, 2) for line in (queries(user) + complete(user, 60 + user, 2.5 + user)).splitlines()]
    listed = [part for line in said for part in (line[6], line.partition(":")[2])]
    (result,) = read(json.dumps(listed, indent=2)).results
    assert result.measurements == {"power": 800, "query_geomean_seconds": 4.5, "query_set_seconds": 62}


def test_runs_of_both_kinds_are_in_one_file():
    other = "Vuser 1:4 Active Virtual Users configured\nVuser 1:TEST RESULT : System achieved 100 NOPM from 230 PostgreSQL TPM\n"
    assert [next(iter(each.measurements)) for each in read(power() + other + power()).results] == [
        "power", "new_orders", "power"
    ]  # fmt: skip
