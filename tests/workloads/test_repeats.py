from pgstrata.workloads.repeats import unroll


def test_a_section_is_written_out_once_for_each_number():
    text = "a\n-- repeat n from 1 to 3\nb@n@;\n-- end of repeat\nc\n"
    assert unroll(text) == "a\nb1;\nb2;\nb3;\nc\n"


def test_sections_are_independent_and_other_comments_stay():
    text = "-- repeat n from 1 to 2\nx@n@\n-- end of repeat\n-- repeated\n-- repeat d from 9 to 10\ny@d@\n-- end of repeat\n"
    assert unroll(text) == "x1\nx2\n-- repeated\ny9\ny10\n"


def test_a_text_without_sections_is_left_alone():
    assert unroll("-- repeat\nSELECT 1;\n") == "-- repeat\nSELECT 1;\n"
