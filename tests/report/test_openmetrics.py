"""Metrics are written as the specification of OpenMetrics wants them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmetrics import NotOpenMetricsError, read_openmetrics
from pgstrata.report.live.openmetrics import (
    Family,
    FamilyType,
    Measured,
    MetricsFormat,
    choose_format,
    render_metrics,
    render_number,
)

LOAD = Family(name="x_load", type=FamilyType.GAUGE, help="Load.", label="class", values=("Lock", "IO"))
CPU = Family(name="x_cpu_seconds_total", type=FamilyType.COUNTER, help="CPU time.", unit="seconds")


def test_families_are_written_in_openmetrics():
    found = (Measured(family=LOAD, values={"Lock": 1.5, "IO": 0.0}), Measured(family=CPU, values={"": 12.0}))
    assert render_metrics(found, MetricsFormat.OPENMETRICS) == (
        "# TYPE x_load gauge\n"
        "# HELP x_load Load.\n"
        'x_load{class="Lock"} 1.5\n'
        'x_load{class="IO"} 0\n'
        "# TYPE x_cpu_seconds counter\n"
        "# UNIT x_cpu_seconds seconds\n"
        "# HELP x_cpu_seconds CPU time.\n"
        "x_cpu_seconds_total 12\n"
        "# EOF\n"
    )


def test_families_are_written_in_the_older_format():
    found = (Measured(family=LOAD, values={"Lock": 1.5}), Measured(family=CPU, values={"": 12.0}))
    assert render_metrics(found, MetricsFormat.PLAIN) == (
        "# TYPE x_load gauge\n"
        "# HELP x_load Load.\n"
        'x_load{class="Lock"} 1.5\n'
        "# TYPE x_cpu_seconds_total counter\n"
        "# HELP x_cpu_seconds_total CPU time.\n"
        "x_cpu_seconds_total 12\n"
    )


def test_a_family_without_values_is_left_out():
    assert render_metrics([Measured(family=CPU)], MetricsFormat.OPENMETRICS) == "# EOF\n"


@given(text=st.text(), values=st.dictionaries(st.text(), st.floats()))
def test_any_text_and_number_survives_the_strict_reader(text, values):
    family = Family(name="x_any", type=FamilyType.GAUGE, help=text, label="name")
    written = render_metrics([Measured(family=family, values=values)], MetricsFormat.OPENMETRICS)
    read = read_openmetrics(written)
    if not values:
        assert not read
        return
    assert read["x_any"].help == text
    samples = {labels[0][1]: value for labels, value in read["x_any"].samples.items()}
    assert samples.keys() == values.keys()
    assert all(
        samples[name] == value or (math.isnan(value) and math.isnan(samples[name])) for name, value in values.items()
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# TYPE x gauge\nx 1\n",
        "# TYPE x gauge\nx 1\n# EOF",
        "x 1\n# EOF\n",
        "# TYPE x counter\nx 1\n# EOF\n",
        "# TYPE x_total counter\nx_total 1\n# EOF\n",
        "# TYPE x counter\nx_total -1\n# EOF\n",
        "# TYPE x counter\nx_total NaN\n# EOF\n",
        "# TYPE x gauge\n# UNIT x seconds\nx 1\n# EOF\n",
        "# TYPE x gauge\nx 1\nx 2\n# EOF\n",
        '# TYPE x gauge\nx{a="1",a="2"} 1\n# EOF\n',
        '# TYPE x gauge\nx{a="1\\t"} 1\n# EOF\n',
        "# TYPE x gauge\nx  1\n# EOF\n",
        "# TYPE x gauge\nx 1_0\n# EOF\n",
        "# TYPE x gauge\n\nx 1\n# EOF\n",
        "# TYPE x gauge\n# EOF\n",
        "# TYPE x gauge\nx 1\n# TYPE y gauge\ny 1\n# HELP x late\n# EOF\n",
    ],
)
def test_the_strict_reader_refuses_what_is_no_openmetrics(text):
    with pytest.raises(NotOpenMetricsError):
        read_openmetrics(text)


PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;"
    "q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", MetricsFormat.PLAIN),
        ("*/*", MetricsFormat.PLAIN),
        ("text/html, */*;q=0.1", MetricsFormat.PLAIN),
        (PROMETHEUS_3, MetricsFormat.OPENMETRICS),
        ("application/openmetrics-text", MetricsFormat.OPENMETRICS),
        ("Application/OpenMetrics-Text; Version=1.0.0", MetricsFormat.OPENMETRICS),
        ("application/openmetrics-text; version=2.0.0", MetricsFormat.PLAIN),
        ('application/openmetrics-text; Version="2.0.0"', MetricsFormat.PLAIN),
        ('application/openmetrics-text; version = "1.0.0"', MetricsFormat.OPENMETRICS),
        ("application/openmetrics-text;q=0.2, text/plain;q=0.9", MetricsFormat.PLAIN),
        ("application/openmetrics-text;q=nan, text/plain;q=0.1", MetricsFormat.PLAIN),
        ("application/openmetrics-text;q=x", MetricsFormat.PLAIN),
        ("text/plain, application/openmetrics-text", MetricsFormat.OPENMETRICS),
        (";;;,,=", MetricsFormat.PLAIN),
    ],
)
def test_a_client_gets_the_format_that_it_wants_most(accept, form):
    assert choose_format(accept) is form


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3.0, "3"),
        (0.1, "0.1"),
        (1e-7, "1e-07"),
        (-0.5, "-0.5"),
        (1e300, "1e+300"),
        (math.inf, "+Inf"),
        (math.nan, "NaN"),
    ],
)
def test_numbers_are_short(value, text):
    assert render_number(value) == text
