"""Evidence as it may be found one day: real files with damages that Hypothesis chooses."""

import re

from hypothesis import strategies as st

WORDS = ["", "nan", "-inf", "1e999", "-1", "9" * 400, "0", "\x00", "\uff11\uff12", "x", "\t", "-", "1e308"]


PLACES = st.floats(0, 1)
DAMAGES = st.lists(
    st.tuples(
        st.sampled_from(["gap", "twice", "elsewhere", "cut", "word", "garbage", "end"]),
        PLACES,
        PLACES,
        st.sampled_from(WORDS),
    ),
    min_size=1,
    max_size=4,
)


def damaged(text, damages):
    """A real file, some of whose lines are gone, twice there, elsewhere, cut, or have another word in them."""
    lines = text.split(b"\n")
    for kind, here, there, word in damages:
        at, to = sorted(round(place * max(0, len(lines) - 1)) for place in (here, there))
        match kind:
            case "gap":
                del lines[at:to]
            case "twice":
                lines[at:at] = lines[at : at + 30]
            case "elsewhere" if lines:
                lines.insert(to, lines.pop(at))
            case "cut" if lines:
                lines[at] = lines[at][: round(there * len(lines[at]))]
            case "word" if lines:
                words = re.split(rb"([\t :])", lines[at])
                words[2 * round(there * (len(words) // 2))] = word.encode()
                lines[at] = b"".join(words)
            case "garbage":
                lines.insert(at, word.encode() * 3)
            case "end":
                del lines[at:]
    return b"\n".join(lines)
