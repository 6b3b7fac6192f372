"""The program, but that it looks only shortly at what the client alone could drive, and at no more than it needs.

What the client alone could drive takes both CPUs for two seconds, once in each study; tests make a hundred of them. Cells
with a rate ask `select 1` for twenty times as many transactions, the others for as many as there are, for a second.
The maximum of an environment is that of its third second.
"""

from dataclasses import replace

from pgstrata.__main__ import main
from pgstrata.conduct import ceiling, rates
from pgstrata.drivers.pgbench.driver import PgbenchDriver

_SECONDS = 1.0
_OF_MAXIMUM = 3.0
_TIMES = 20

_least_load = PgbenchDriver.least_load


def _enough(self, load):
    least, rate = _least_load(self, load), load.cell.rate
    return replace(least, cell=replace(least.cell, rate=rate and _TIMES * rate))


def shorten():
    """From now on, in this process."""
    ceiling._SECONDS = _SECONDS
    rates.SECONDS_OF_MAXIMUM = _OF_MAXIMUM
    PgbenchDriver.least_load = _enough


if __name__ == "__main__":
    shorten()
    main()
