"""Settings that differ from defaults, and what a study can be repeated with."""

from __future__ import annotations

import dataclasses
import re

from pgstrata.model.server import ChangedSetting
from rendering import render_html


def page_of(answer, *settings):
    changed = tuple(
        (name, ChangedSetting(name=setting, value=value, unit=unit, default=default))
        for name, setting, value, unit, default in settings
    )
    page = render_html(dataclasses.replace(answer, changed_settings=changed))
    return re.sub(r"<wbr>|</?(?:span|code)[^>]*>", "", page).replace("\xa0", " ")


def test_settings_that_differ_from_defaults_have_their_units_and_environments(desk):
    page = page_of(
        desk.answer(blocks=1),
        ("pg16", "shared_buffers", "131072", "8kB", "16384"),
        ("pg18", "shared_buffers", "131072", "8kB", "16384"),
        ("pg16", "wal_compression", "lz4", "", "off"),
        ("pg18", "checkpoint_timeout", "900", "s", "300"),
        ("pg16", "work_mem", "-1", "kB", "4096"),
    )
    assert "Settings that differ from PostgreSQL&#39;s defaults (4)" in page
    rows = dict(re.findall(r'<th scope="row">(\w+)</th><td[^>]*>(.*?)</td>', page))
    assert rows["shared_buffers"] == "1 GB"
    assert rows["wal_compression"] == "lz4 (16)"
    assert rows["checkpoint_timeout"] == "900 s (18)"
    assert rows["work_mem"] == "-1 (16)"
    assert "128 MB" in page


def test_without_any_nothing_is_said_of_defaults(desk):
    assert "differ from PostgreSQL&#39;s defaults" not in page_of(desk.answer(blocks=1))


def test_each_binary_is_named_once_with_the_environments_that_ran_it(desk):
    answer = desk.answer(blocks=1)
    environments = {
        name: dataclasses.replace(each, facts={**each.facts, "server.digest": ("a" if "16" in name else "b") * 64})
        for name, each in answer.study.environments.items()
    }
    page = page_of(dataclasses.replace(answer, study=dataclasses.replace(answer.study, environments=environments)))
    part = page.split("<h2>How to reproduce")[1]
    assert part.count("a" * 64) == part.count("b" * 64) == 1
    assert "SHA-256 of the server&#39;s binary" in part
