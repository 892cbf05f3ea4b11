"""What every source of bounds cost and brought: the table of results/bounds.md.

    python scripts/bench/sources.py [NAME ...] [--limit 60] [--out FILE]

The default question on files of `instances`, and that of two classes on scikit-learn's breast cancer data (the first 10
of its 30 columns, or all), one thread. The limit counts processor time, as it passes on a machine that nobody else uses
(`regions.py --quiet`). Sources that took less than a hundredth of the seconds and brought nothing are left out.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from _common import INSTANCES, TARGETS, deliver, environment, parser_of, table
from regions import keep_quiet_time

import sparsecv_mio as sc
from sparsecv_mio.search.accounts import OTHER_WORK

if TYPE_CHECKING:
    from sparsecv_mio.certificate.records import Record

NAMES = ("diabetes", "autompg", "diabetes64", "housing2", "topgear_int", "cancer10", "cancer30")
HEAD = ["file", "columns", "source", "problems", "nodes", "CPU s", "decided", "ruled out", "gap closed"]
LITTLE = 0.01  # of the seconds


def solved(name: str, limit: float) -> Record:
    """Ask the default question."""
    if not name.startswith("cancer"):
        return sc.solve(
            INSTANCES / f"{name}.csv", (TARGETS | {"topgear_int": "MPG"})[name], time_limit=limit, threads=1
        )
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer(as_frame=True)
    frame = bunch.frame.iloc[:, : int(name.removeprefix("cancer"))].assign(target=bunch.target)
    return sc.solve(frame, "target", loss="logistic", time_limit=limit, threads=1)


def rows_of(name: str, record: Record) -> list[list[object]]:
    """Return a row for each source."""
    whole = sum(work.cpu_seconds for work in record.work.sources)
    return [
        [name, record.data.p, work.source, f"{work.problems:,}", f"{work.nodes:,}", f"{work.cpu_seconds:.1f}",
         f"{work.decided:,}", f"{work.ruled_out:,}", f"{100.0 * work.gap_closed:.1f}%"]
        for work in record.work.sources
        if work.source != OTHER_WORK
        and (work.cpu_seconds > LITTLE * whole or work.decided or work.ruled_out or work.gap_closed)
    ]  # fmt: skip


def main() -> None:
    """Print the tables, and what is left of each gap."""
    parser = parser_of(__doc__, out=True)
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--limit", type=float, default=60.0)
    given = parser.parse_args()
    keep_quiet_time(1)
    rows: list[list[object]] = []
    left = []
    for name in given.names:
        solved(name, 0.5)  # kernels are loaded
        record = solved(name, given.limit)
        rows += rows_of(name, record)
        up_to = f", proved up to tau {record.region.up_to_tau}" if record.region and record.region.up_to_tau else ""
        gap = "all" if record.gap is None else f"{100.0 * record.gap:.1f}%"
        left.append(f"{name}: {record.status}, gap left {gap}{up_to}, {record.work.seconds:.1f} s")
        print(left[-1], file=sys.stderr, flush=True)
    deliver("\n\n".join([environment(), table(HEAD, rows), "\n".join(left)]) + "\n", given.out)


if __name__ == "__main__":
    main()
