"""How long a campaign lasts, and what it counted.

`make fuzz` sets FUZZ_EXAMPLES, the examples of each test, drawn anew by FUZZ_SEED; the suite takes a few, always the
same. Counts are printed at the end, and a line of them is added to build/campaign.jsonl, which totals.py adds up.
"""

from __future__ import annotations

import json
import os
import subprocess
import time

import pytest
from drawn import CAMPAIGN, COUNTS
from hypothesis import HealthCheck, settings
from repository import ROOT

settings.register_profile("suite", max_examples=12, derandomize=True, deadline=None, database=None)
settings.register_profile(
    "campaign", max_examples=int(os.environ.get("FUZZ_EXAMPLES", "1")), deadline=None, print_blob=True, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
settings.load_profile("campaign" if CAMPAIGN else "suite")
COMMIT = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True).stdout


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the counts of a campaign, and add them to those of the ones before."""
    if not COUNTS or not CAMPAIGN:
        return
    failed = [report.nodeid for report in terminalreporter.stats.get("failed", [])]
    asked = {name: value for name, value in os.environ.items() if name.startswith("FUZZ_")}
    line = {
        "commit": COMMIT.strip(), **asked, "cpu": round(time.process_time(), 1), "failed": failed,
        "counts": dict(sorted(COUNTS.items())),
    }  # fmt: skip
    place = ROOT / "build" / "campaign.jsonl"
    place.parent.mkdir(exist_ok=True)
    with place.open("a") as store:
        store.write(json.dumps(line) + "\n")
    for name, count in sorted(COUNTS.items()):
        terminalreporter.write_line(f"{count:>12,}  {name}")
