"""`make bench`: figures of pgstrata itself, measured side by side. It never fails a build.

`ONLY=startup` runs one, `ONLY=live,live-runs` several. `LOADS=5,20,equal` shortens the live ones (`live.py`).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from agreement import measure_agreement, measure_agreement_writing
from along_load import measure_along_load
from anomalies import measure_anomalies
from attribution import measure_attribution
from background_load import measure_background_load
from bank.measure import measure_bank
from bisection import measure_bisection
from boot import measure_boot
from boots import measure_boots
from causes import measure_causes
from correlate import measure_correlate
from cpu import measure_cpu
from demo import measure_demo
from detection import measure_detection
from drivers import measure_drivers
from equals import measure_live_equal, measure_live_equal_writing
from figures import Benchmark, run_benchmarks
from importing import measure_importing
from incidents.measure import measure_incidents
from large_study import measure_large_study
from largest_plan import measure_largest_plan
from live import measure_live, measure_live_runs, measure_live_writing
from live_screen import measure_live_screen
from loading import measure_loading
from merged import measure_merged
from newcomer import measure_newcomer
from objective import measure_objective
from observer import measure_observer, measure_overhead
from order_entry import measure_order_entry
from ordered import measure_ordered
from peaks import measure_peaks
from percentiles import measure_percentiles
from perf import measure_perf
from readability import measure_readability
from real_noise import measure_real_noise
from recorder import measure_recorder
from recording import measure_recording
from remote import measure_remote
from reset import measure_reset
from rounds import measure_rounds
from scraping import measure_scraping
from sending import measure_dataset_transfer
from serving import measure_serving
from slices import measure_slices
from ssh_sampling import measure_ssh_sampling
from startup import measure_startup
from statements import measure_statements
from structure import measure_structure
from switch import measure_switch
from threads import measure_threads
from transports import measure_transports
from verdicts import measure_verdicts
from visit import measure_visit
from watching import measure_watching
from why import measure_why

BENCHMARKS: dict[str, Benchmark] = {
    "startup": measure_startup,
    "structure": measure_structure,
    "readability": measure_readability,
    "large-study": measure_large_study,
    "largest-plan": measure_largest_plan,
    "import": measure_importing,
    "why": measure_why,
    "boot": measure_boot,
    "boots": measure_boots,
    "peaks": measure_peaks,
    "merged": measure_merged,
    "reset": measure_reset,
    "loading": measure_loading,
    "drivers": measure_drivers,
    "order-entry": measure_order_entry,
    "overhead": measure_overhead,
    "observer": measure_observer,
    "percentiles": measure_percentiles,
    "perf": measure_perf,
    "watching": measure_watching,
    "recorder": measure_recorder,
    "recording": measure_recording,
    "scraping": measure_scraping,
    "live-screen": measure_live_screen,
    "serve": measure_serving,
    "correlate": measure_correlate,
    "switch": measure_switch,
    "statements": measure_statements,
    "remote": measure_remote,
    "ssh-sampling": measure_ssh_sampling,
    "dataset-transfer": measure_dataset_transfer,
    "slices": measure_slices,
    "rounds": measure_rounds,
    "visit": measure_visit,
    "threads": measure_threads,
    "bank": measure_bank,
    "incidents": measure_incidents,
    "transports": measure_transports,
    "agreement": measure_agreement,
    "agreement-writing": measure_agreement_writing,
    "demo": measure_demo,
    "newcomer": measure_newcomer,
    "live": measure_live,
    "live-runs": measure_live_runs,
    "live-equal": measure_live_equal,
    "live-writing": measure_live_writing,
    "live-equal-writing": measure_live_equal_writing,
    "verdicts": measure_verdicts,
    "cpu": measure_cpu,
    "real-noise": measure_real_noise,
    "background-load": measure_background_load,
    "ordered": measure_ordered,
    "along-load": measure_along_load,
    "objective": measure_objective,
    "bisection": measure_bisection,
    "causes": measure_causes,
    "anomalies": measure_anomalies,
    "attribution": measure_attribution,
    "detection": measure_detection,
}

sys.exit(run_benchmarks(BENCHMARKS, os.environ.get("ONLY"), Path(__file__).parent / "results.json"))
