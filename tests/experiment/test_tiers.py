"""Scales as multiples of shared_buffers or of the memory limit."""

import pytest

HEAD = '[factors]\nserver = ["16", "18"]\n'
BUFFERS = '[common.settings]\nshared_buffers = "4GB"\n'
LIMIT = '[common]\nlimits.memory = "2GB"\n'


def cells(scale, workload="select-only"):
    return f'[[cells]]\nworkload = "{workload}"\nscale = {scale}\nclients = 2\n'


def scales(experiment):
    return [cell.scale for cell in experiment.cells]


@pytest.mark.parametrize("sign", ["×", "x", "*", " x ", " × "])
def test_a_share_of_shared_buffers_becomes_a_scale(parse, sign):
    # 16 MB a unit
    assert scales(parse(HEAD + BUFFERS + cells(f'"0.5{sign}shared_buffers"'))) == [128]


def test_a_multiple_of_the_memory_limit_becomes_a_scale(parse):
    assert scales(parse(HEAD + LIMIT + cells('"1.5 × memory limit"'))) == [192]


def test_lists_mix_numbers_and_tiers(parse):
    assert scales(parse(HEAD + BUFFERS + cells('[10, "0.5 × shared_buffers", "2 × shared_buffers"]'))) == [10, 128, 512]


def test_data_that_should_fit_are_rounded_down_and_others_up(parse):
    text = HEAD + '[common.settings]\nshared_buffers = "1000MB"\n'
    assert scales(parse(text + cells('["1 × shared_buffers", "1.1 × shared_buffers"]'))) == [62, 69]


def test_a_setting_without_a_unit_counts_in_pages(parse):
    text = HEAD + "[common.settings]\nshared_buffers = 524288\n"
    assert scales(parse(text + cells('"0.5 × shared_buffers"'))) == [128]


def test_the_baseline_counts_and_a_note_says_so(parse):
    text = 'baseline = { "limits.memory" = "2GB" }\n[factors]\n"limits.memory" = ["1GB", "2GB"]\n'
    experiment = parse(text + cells('"1.5 × memory limit"'))
    assert scales(experiment) == [192]
    (note,) = [note for note in experiment.notes if "memory limit" in note]
    assert "scale 192 of select-only = 1.5 × memory limit" in note
    assert "3 GB of data" in note
    assert "the same in all environments" in note


@pytest.mark.parametrize(
    ("text", "line", "what", "remedy"),
    [
        (HEAD + cells('"0.5 × shared_buffers"'), 5, "shared_buffers of the baseline pg16 is not known", "[common.settings]"),
        (HEAD + cells('"1.5 × memory limit"'), 5, "the baseline pg16 has no memory limit", "limits.memory"),
        (HEAD + BUFFERS + cells('"half"'), 7, "'half' is not a size of data", "0.5 × shared_buffers"),
        (HEAD + BUFFERS + cells('"10"'), 7, "'10' is not a size of data", "integer without quotes"),
        (HEAD + BUFFERS + cells('"0 × shared_buffers"'), 7, "cannot be 0 ×", "up to 1000"),
        (HEAD + BUFFERS + cells(f'"{"9" * 500} x shared_buffers"'), 7, "cannot be 999", "up to 1000"),
        (HEAD + BUFFERS + cells('"0.001 × shared_buffers"'), 7, "smallest data of pgbench take 16 MB", "larger factor"),
        (HEAD + BUFFERS + cells('["1 x shared_buffers", "1.0 × shared_buffers"]'), 7, "is listed twice", "take one"),
        (HEAD + BUFFERS.replace("4GB", "lots") + cells('"1 x shared_buffers"'), 7, "is not a size: 'lots'", "4GB"),
    ],
)  # fmt: skip
def test_what_cannot_be_resolved_is_refused_with_line_and_remedy(problems, text, line, what, remedy):
    (found,) = problems(text)
    assert (found.line, found.key) == (line, "cells[1].scale")
    assert what in found.what
    assert remedy in found.remedy


def test_two_tiers_of_one_scale_are_refused(problems):
    (found,) = problems(HEAD + BUFFERS + cells('[128, "0.5 × shared_buffers"]'))
    assert "listed twice" in found.what
