"""What is wrong with how a page looks in a browser; each finding is a sentence. The checks run inside the page."""

from __future__ import annotations

from pathlib import Path

_SCRIPT = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
SCHEMES = ("light", "dark")
DESK, PHONE = (1400, 900), (390, 844)
# A page of A4 without its margins: 186 by 271 mm.
PAPER = (703, 1024)
_SMALLEST_ON_PAPER = 7.2
_PART, _MOST_PICTURED = 2000, 20_000


def show(tab, page, size, scheme="light"):
    """Open a page with the checks in it."""
    tab.resize(*size, scheme)
    tab.show(page)
    tab.run(f"{_SCRIPT}; true")


def look(tab, page, size):
    """Everything that is wrong with a page of that size, in both colour schemes, with all that is folded opened."""
    show(tab, page, size)
    tab.run("pageChecks.openAll()")
    found = [finding for check in ("overflow", "overlaps", "smallText") for finding in tab.run(f"pageChecks.{check}()")]
    for scheme in SCHEMES:
        tab.prefer(scheme)
        found += [f"{scheme}: {finding}" for finding in tab.run("pageChecks.contrast()")]
    return found


def look_at_paper(tab, page):
    """Everything that is wrong with a page as it is printed by somebody whose screen is dark."""
    show(tab, page, PAPER, "dark")
    tab.prefer("dark", "print")
    checks = ("overflow()", "overlaps()", f"smallText({_SMALLEST_ON_PAPER})", "contrast()", f"paged({PAPER[1]})")
    return [finding for check in checks for finding in tab.run(f"pageChecks.{check}")]


def tab_through(tab, *, most=400):
    """What is wrong with reaching everything on the page that is shown by the key Tab, from its beginning."""
    names = tab.run("pageChecks.findStops()")
    wrong = []
    for place, name in enumerate(names[:most]):
        tab.press("Tab")
        found = tab.run("pageChecks.focused()")
        wrong += found["wrong"]
        if found["at"] != place:
            return [*wrong, f"after {place} stops the focus is on {found['name']} and not on {name}"]
    return wrong


def read_first_screen(tab, page, size):
    """Pixels down to the lower edges of answer, interval, controls and matrix; None for what is not there."""
    show(tab, page, size)
    return tab.run("pageChecks.bottoms()")


def keep_pictures(folder, tab, page, size):
    """The first screen, and the page from top to bottom with all that is folded opened, in both colour schemes."""
    folder.mkdir(parents=True, exist_ok=True)
    for scheme in SCHEMES:
        show(tab, page, size, scheme)
        name = f"{page.stem}-{size[0]}-{scheme}"
        (folder / f"{name}.png").write_bytes(tab.picture())
        tab.run("pageChecks.openAll()")
        height = tab.run("document.documentElement.scrollHeight")
        for part, top in enumerate(range(0, min(height, _MOST_PICTURED), _PART), 1):
            part_height = min(_PART, height - top)
            (folder / f"{name}-{part:02}.png").write_bytes(tab.picture(top, part_height))
