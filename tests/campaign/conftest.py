"""How long a campaign lasts, and what it counted.

`make fuzz` sets FUZZ_EXAMPLES, the examples of each test, drawn again by FUZZ_SEED; the suite takes a few, always the
same. What the tests of a campaign counted is printed at the end.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest
from counts import CAMPAIGN, COUNTS
from hypothesis import HealthCheck, settings

settings.register_profile("suite", max_examples=8, derandomize=True, deadline=None, database=None)
settings.register_profile(
    "campaign", max_examples=int(os.environ.get("FUZZ_EXAMPLES", "1")), deadline=None, print_blob=True, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
settings.load_profile("campaign" if CAMPAIGN else "suite")
SAID: Counter[str] = Counter()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep what a test of a campaign counted."""
    if CAMPAIGN and report.when == "call":
        SAID.update(COUNTS)
        COUNTS.clear()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the counts of a campaign."""
    for name, count in sorted(SAID.items()):
        terminalreporter.write_line(f"{count:>12,}  {name}")
