"""What helpers that compile ahead save: `warmup` and a first fit of 200 x 65, from empty caches, as ratios of seconds.

    python scripts/bench/compile_ahead.py --rounds 3

Each command runs without helpers and with as many as this machine's cores allow (`--helpers N`: so many), in turn, and
the least wall-clock seconds of each count. Nothing else should run on the machine: helpers use the cores that are idle.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time

from _common import environment, table
from cold_start import FIT, ROOT

COMMANDS = {
    "warmup": "from sparsecv_mio.warmup import warm_up; warm_up()",
    "first fit, 200 x 65": FIT.format(n=200, p=65),
}


def seconds(code: str, helpers: str) -> float:
    """Return the wall-clock seconds of a process that runs some code from an empty cache."""
    with tempfile.TemporaryDirectory() as place:
        own = {"NUMBA_CACHE_DIR": place, "PYTHONPATH": str(ROOT), "SPARSECV_MIO_HELPERS": helpers}
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | own, stderr=subprocess.DEVNULL)
        return time.perf_counter() - begin


def main() -> int:
    """Measure in turn, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--helpers", default="", help="how many; by default as many as the cores allow")
    asked = parser.parse_args()
    print(environment())
    rows = []
    for name, code in COMMANDS.items():
        taken = [(seconds(code, "0"), seconds(code, asked.helpers)) for _ in range(asked.rounds)]
        alone, helped = (min(column) for column in zip(*taken, strict=True))
        rows.append([name, f"{alone:.1f}", f"{helped:.1f}", f"{helped / alone:.2f}"])
    print(table(["from an empty cache", "alone, s", "with helpers, s", "ratio"], rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
