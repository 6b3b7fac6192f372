"""What a difference and a level are made of, as the comparison of pg18 with pg16 has it."""

from __future__ import annotations

import dataclasses

from pgstrata.model.attribution import (
    Account,
    AccountRow,
    Attribution,
    Contribution,
    CountedUse,
    LevelAccount,
    Method,
    Part,
    ValueInterval,
)

_US = 1e-6
CELL = "simple-update-s10-c2"
EVIL = "SELECT '<script>alert(1)</script>\x1b[31m' -- " + "long " * 60


def contribution(part, event="", query="", *, reference=100.0, difference=-9.0, resolved=True) -> Contribution:
    return Contribution(
        part=part,
        event=event,
        query=query,
        value=(reference + difference) * _US,
        reference=reference * _US,
        difference=difference * _US,
        interval=ValueInterval(low=(difference - 1) * _US, high=(difference + 1) * _US),
        resolved=resolved,
        samples=1200,
    )


def attribution(**changes) -> Attribution:
    rows = (
        contribution(Part.WAIT, "IO/WalSync", "END", reference=220, difference=-31),
        contribution(Part.CPU, "", EVIL, reference=400),
        contribution(Part.CLIENT, reference=300, difference=0.8, resolved=False),
    )
    parts = tuple(dataclasses.replace(row, query="") for row in rows)
    values = {
        "environment": "pg18",
        "reference": "pg16",
        "cell": CELL,
        "method": Method.COUNTED,
        "blocks": 9,
        "samples": 3600,
        "total": contribution(None, reference=920, difference=-39.2),
        "parts": parts,
        "queries": (),
        "rows": rows,
        "causes": rows[:1],
        "beside": (
            CountedUse(
                metric="wal_per_tx",
                value=1190.0,
                reference=1200.0,
                difference=-10.0,
                interval=ValueInterval(low=-12.0, high=-8.0),
                blocks=9,
            ),
        ),
    }
    return Attribution(**{**values, **changes})


def account(environment: str, cpu: float) -> LevelAccount:
    rows = (
        AccountRow(part=Part.CPU, event="", query="", seconds=cpu, samples=400),
        AccountRow(part=Part.WAIT, event="IO/WalSync", query="", seconds=2e-4, samples=200),
    )
    whole = Account(seconds=cpu + 2e-4, samples=600, rows=rows)
    return LevelAccount(environment=environment, cell=CELL, blocks=9, method=Method.COUNTED, account=whole)
