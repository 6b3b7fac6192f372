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


def summary(unfit):
    return ImportSummary(
        file="out.csv", observations=(), compared=("a",), cells=(), differing=(), asked=True, by_order=False, files=1,
        logs=0, unfit=unfit, left_out=(),
    )  # fmt: skip


def test_folders_of_files_that_are_not_shown_are_counted():
    paths = [f"run{number}" for number in range(12)] + [f"old/{number}/log" for number in range(3)] + ["notes/a"] * 4
    said = render_import(summary(paths))
    assert "  and 9 more: 4 in notes, 2 in the folder itself, 1 in old/0, 1 in old/1, 1 in old/2\n" in said
    many = render_import(summary([f"{number:02}/log" for number in range(30)]))
    assert many.splitlines()[-2].endswith("1 in 17, the others in 12 other folders")
    assert "  and 5 more\n" in render_import(summary([f"run{number}" for number in range(15)]))
