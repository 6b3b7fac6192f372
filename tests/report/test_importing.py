"""What an import says of files whose names strangers chose."""

from pgstrata.report.commands.importing import ImportSummary, render_import


def test_names_of_files_give_the_terminal_no_orders():
    said = render_import(
        ImportSummary(
            file="out.csv", observations=(), compared=("a\x1b[2J",), cells=(), differing=("b\x9b1m",),
            asked=True, by_order=False, files=1, logs=0, unfit=("x\x1b]0;title\x07\nforged line",),
            left_out=[("y\r", "no\x08 result")],
        )
    )  # fmt: skip
    assert all(line.isprintable() for line in said.split("\n"))
    assert "  x\ufffd]0;title\ufffd\ufffdforged line\n" in said
