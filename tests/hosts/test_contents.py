"""What is in a folder, read from what programs say of it."""

import pytest

from pgstrata.hosts.contents import Reader, parse_contents, parse_listing, parse_read

LISTED = (
    b"d 755 \0\0f 644 12\0a b\0d 700 \0bin\0f 755 30\0bin/x\0l 777 x\0bin/y\0f 755 1\0lib/bin/z\0f 600 0\0line\nbreak\0"
)
SUMS = [b"0" * 64, b"1" * 64, b"2" * 64, b"3" * 64]
FILES = [b"a b", b"bin/x", b"lib/bin/z", b"line\nbreak"]


def said_by(form):
    return b"\n".join(form % (found, name) for found, name in zip(SUMS, FILES, strict=True)) + b"\n"


def test_a_listing_has_files_programs_and_their_size():
    listing = parse_listing(LISTED)
    assert listing.files == tuple(FILES)
    assert listing.programs == (b"bin/x", b"bin/y", b"lib/bin/z")
    assert listing.size == 43


def test_a_listing_that_was_cut_differs_from_the_whole():
    whole = parse_contents(parse_listing(LISTED), said_by(b"%b *./%b"), Reader.SHA256)
    for end in range(len(LISTED)):
        assert parse_contents(parse_listing(LISTED[:end]), said_by(b"%b *./%b"), Reader.SHA256) != whole


@pytest.mark.parametrize("form", [b"%b *./%b", b"%b  ./%b", b"\\%b  ./%b"])
def test_sums_are_read_as_each_program_writes_them(form):
    contents = parse_read(LISTED + said_by(form), Reader.SHA256)
    assert contents.lines == tuple(sorted((
        b"\0d 755 \0", b"a b\0f 644 12\0" + SUMS[0], b"bin\0d 700 \0", b"bin/x\0f 755 30\0" + SUMS[1],
        b"bin/y\0l 777 x\0", b"lib/bin/z\0f 755 1\0" + SUMS[2], b"line\nbreak\0f 600 0\0" + SUMS[3],
    )))  # fmt: skip


def test_a_checksum_by_crc_has_the_size_in_it():
    (line,) = parse_read(b"f 600 7\0x\0" + b"4294967295 7 ./x\n", Reader.CRC).lines
    assert line == b"x\0f 600 7\0004294967295 7"


@pytest.mark.parametrize("said", [b"", said_by(b"%b *./%b")[:-90], said_by(b"%b *./%b") + b"4" * 64 + b" *./more\n"])
def test_a_file_without_a_sum_or_a_sum_without_a_file_is_no_contents(said):
    assert parse_read(LISTED + said, Reader.SHA256) is None


def test_what_differs_is_named_once():
    listing = parse_listing(LISTED)
    here = parse_contents(listing, said_by(b"%b *./%b"), Reader.SHA256)
    there = parse_contents(listing, said_by(b"%b *./%b").replace(SUMS[1], SUMS[0]), Reader.SHA256)
    assert here.differing(here) == ()
    assert here.differing(there) == there.differing(here) == (b"bin/x",)
    assert here.digest != there.digest
