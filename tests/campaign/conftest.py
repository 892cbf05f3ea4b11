"""How long a campaign lasts, and what it counted.

`make fuzz` sets FUZZ_EXAMPLES, the examples of each test, drawn again by FUZZ_SEED; the suite takes a few, always the
same. Each test adds a line of its counts to build/campaign.jsonl, which totals.py adds up; all are printed at the end.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections import Counter
from typing import Any

import pytest
from counts import CAMPAIGN, COUNTS
from hypothesis import HealthCheck, settings
from repository import ROOT

settings.register_profile("suite", max_examples=2, derandomize=True, deadline=None, database=None)
settings.register_profile(
    "campaign", max_examples=int(os.environ.get("FUZZ_EXAMPLES", "1")), deadline=None, print_blob=True, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
settings.load_profile("campaign" if CAMPAIGN else "suite")
COMMIT = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True).stdout


SAID: Counter[str] = Counter()
SPENT: list[float] = []
STORE = ROOT / "build" / "campaign.jsonl"


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Store what a test of a campaign counted."""
    if not COUNTS or not CAMPAIGN or report.when != "call":
        return
    asked = {name: value for name, value in os.environ.items() if name.startswith("FUZZ_")}
    line: dict[str, Any] = {"commit": COMMIT.strip(), **asked, "test": report.nodeid, "outcome": report.outcome,
            "cpu": round(time.process_time() - sum(SPENT), 1), "counts": dict(sorted(COUNTS.items()))}  # fmt: skip
    STORE.parent.mkdir(exist_ok=True)
    with STORE.open("a") as store:
        store.write(json.dumps(line) + "\n")
    SPENT.append(line["cpu"])
    SAID.update(COUNTS)
    COUNTS.clear()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the counts of a campaign."""
    for name, count in sorted(SAID.items()):
        terminalreporter.write_line(f"{count:>12,}  {name}")
