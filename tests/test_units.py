"""Units: what users write, and what they read."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgstrata.units import (
    Unit,
    count_digits,
    parse_bytes,
    parse_duration,
    parse_ratio,
    printable,
    render_bytes,
    render_digits,
    render_duration,
    render_names,
    render_percent_change,
    render_rate,
    render_share,
    render_value,
    shorten,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("60s", 60), ("10m", 600), ("1h30m", 5400), (" 90 s ", 90), ("1h 30m 5s", 5405), ("250ms", 0.25), ("2min", 120),
     ("1.5h", 5400), ("3 us", 3e-6), ("3µs", 3e-6), ("1d", 86400), ("0s", 0)],
)  # fmt: skip
def test_durations_are_read_in_the_usual_forms(text, seconds):
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", " ", "60", "s", "-5s", "5 parsecs", "1h30", "1e3s", "5s later"])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)


@given(st.integers(0, 99), st.integers(0, 59), st.integers(0, 59))
def test_the_parts_of_a_duration_add_up(hours, minutes, seconds):
    assert parse_duration(f"{hours}h{minutes}m{seconds}s") == hours * 3600 + minutes * 60 + seconds


@pytest.mark.parametrize(
    ("text", "size"),
    [("512MB", 512 * 1024**2), ("8kB", 8192), ("8KB", 8192), ("1 GB", 1024**3), ("1.5GB", 3 * 1024**3 // 2),
     ("2TB", 2 * 1024**4), ("0B", 0)],
)  # fmt: skip
def test_sizes_are_read_with_the_units_of_postgresql(text, size):
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "512", "512mb", "MB", "1GB2", "1 GiB", "5 %"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(ValueError, match="not a size"):
        parse_bytes(text)


@pytest.mark.parametrize(("text", "ratio"), [("3 %", 0.03), ("3%", 0.03), ("0.03", 0.03), ("2.5 %", 0.025), ("1", 1)])
def test_ratios_are_read_as_percent_or_as_numbers(text, ratio):
    assert parse_ratio(text) == pytest.approx(ratio)


@pytest.mark.parametrize("text", ["", "%", "three", "3 s", "3 % of it", "3 percent"])
def test_what_is_no_ratio_is_refused(text):
    with pytest.raises(ValueError, match="not a ratio"):
        parse_ratio(text)


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1 kB"), (1536, "1.5 kB"), (1.4 * 1024**3, "1.4 GB"), (5 * 1024**4, "5 TB"),
     (-2048, "-2 kB"), (0.00119, "0 B"), (-0.01, "0 B"), (0.34, "0.3 B"), (0.99, "1 B"), (1.5, "1.5 B")],
)  # fmt: skip
def test_sizes_are_shown_in_the_largest_fitting_unit(size, text):
    assert render_bytes(size) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0 %"),
        (1e-7, "< 0.01 %"),
        (0.0061, "0.61 %"),
        (0.384, "38 %"),
        (0.994, "99 %"),
        (0.996, "100 %"),
        (1.0, "100 %"),
        (2.5, "250 %"),
    ],
)
def test_a_share_has_two_digits_and_no_exponent(share, text):
    assert render_share(share) == text


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(0, 3, "0"), (-0.0, 3, "0"), (7.1, 3, "7.1"), (9.996, 3, "10"), (99.96, 3, "100"), (999.6, 3, "1000"),
     (1234.5, 2, "1234"), (0.000012345, 3, "0.0000123"), (-0.5, 2, "-0.5"), (math.inf, 3, "inf"), (1e300, 2, "1e+300")],
)  # fmt: skip
def test_a_number_has_at_least_so_many_digits_and_no_exponent_where_zeros_can_be_counted(value, digits, text):
    assert render_digits(value, digits) == text


@given(st.floats(1e-9, 1e14), st.integers(1, 6))
def test_digits_that_are_shown_are_those_of_the_number(value, digits):
    text = render_digits(value, digits)
    assert "e" not in text
    assert float(text) == pytest.approx(value, rel=0.6 * 10 ** (1 - digits))


@given(st.integers(0, 1023), st.sampled_from(["B", "kB", "MB", "GB", "TB"]))
def test_a_size_that_is_shown_can_be_read_back(number, unit):
    size = parse_bytes(f"{number}{unit}")
    assert parse_bytes(render_bytes(size)) == pytest.approx(size, rel=0.005)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (12e-6, "12 µs"), (0.0034, "3.4 ms"), (7.1, "7.1 s"), (60, "1 min"), (250, "4 min 10 s"),
     (3600, "1 h"), (7500, "2 h 5 min"), (-0.5, "-500 ms")],
)  # fmt: skip
def test_durations_are_shown_for_people(seconds, text):
    assert render_duration(seconds) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(1.042, "+4.2 %"), (0.9, "-10.0 %"), (1, "±0.0 %"), (0.99999, "±0.0 %"), (1.00001, "±0.0 %"), (3.5, "+250 %")],
)
def test_a_ratio_is_shown_as_a_signed_change(ratio, text):
    assert render_percent_change(ratio) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (12345.6, Unit.PER_SECOND, "12,346/s"),
        (12.345, Unit.PER_SECOND, "12.3/s"),
        (0.0012, Unit.SECONDS, "1.2 ms"),
        (25e-6, Unit.SECONDS_PER_TRANSACTION, "25 µs/tx"),
        (2048, Unit.BYTES, "2 kB"),
        (512, Unit.BYTES_PER_TRANSACTION, "512 B/tx"),
        (3.14159, Unit.PER_TRANSACTION, "3.14/tx"),
        (1.5, Unit.CPUS, "1.50 CPU"),
        (0.256, Unit.RATIO, "25.6 %"),
        (1234567, Unit.COUNT, "1,234,567"),
    ],
)
def test_a_value_is_shown_with_its_unit(value, unit, text):
    assert render_value(value, unit) == text


@pytest.mark.parametrize("unit", list(Unit))
def test_a_value_that_is_not_there_is_shown_as_such(unit):
    assert render_value(math.nan, unit) == "n/a"


@pytest.mark.parametrize(("render", "value"), [(render_duration, 0.9997), (render_bytes, 999.7 * 1024)])
def test_a_number_that_rounds_up_to_a_thousand_is_not_shown_with_an_exponent(render, value):
    assert "e+" not in render(value)


@pytest.mark.parametrize(
    ("value", "text"), [(1234.5, "1,234"), (56.7, "56.7"), (0.012, "0.012"), (-200.0, "-200"), (0, "0")]
)
def test_a_rate_has_three_digits_or_more(value, text):
    assert render_rate(value) == text


@pytest.mark.parametrize(
    ("text", "most", "short"),
    [("", 8, ""), ("as it is", 8, "as it is"), ("as it is.", 8, "as it..."), ("some more", 8, "some...")],
)
def test_a_text_that_is_too_long_ends_with_three_points(text, most, short):
    assert shorten(text, most) == short


@given(st.text(max_size=20), st.integers(4, 12))
def test_a_shortened_text_is_never_longer_than_asked_for(text, most):
    assert len(shorten(text, most)) <= most


@given(st.text(max_size=20))
def test_nothing_is_left_in_a_printable_text_that_a_terminal_would_obey(text):
    shown = printable(text)
    assert shown.isprintable()
    assert len(shown) == len(text)
    assert all(one in (other, "\ufffd") for one, other in zip(shown, text, strict=True))


def test_of_many_names_the_first_are_named():
    assert render_names(["a", "b", "c"], 3) == "a, b, c"
    assert render_names(["a", "b", "c", "d"], 2) == "a, b and 2 more"


@pytest.mark.parametrize(
    ("value", "digits"), [(1200.0, 2), (-0.0034, 2), (1234.5678, 8), (1.25e-7, 3), (-1.25e20, 3), (0.0, 0)]
)
def test_digits_are_counted_without_sign_exponent_and_zeros_at_the_ends(value, digits):
    assert count_digits(value) == digits
