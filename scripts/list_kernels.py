"""List the kernels, the types for which they are compiled and the uses that call them, for those who compile ahead.

    python scripts/list_kernels.py

Each step of :mod:`sparsecv_mio.warmup` runs in a process of its own, from a cache that was empty (minutes). What is
written is `sparsecv_mio/kernels/kernel_list.json`: kernels in the order in which they were compiled, a kernel after
those that it calls, and for each use the kernels that Python calls, in their order. A test says when it is out of date.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "sparsecv_mio" / "kernels" / "kernel_list.json"
ONE = """
import json, sys
from numba.core import sigutils
from sparsecv_mio.kernels.kernel_cache import KernelCache
from sparsecv_mio.warmup import STEPS

asked, kept, depth = [], [], [0]
load, save = KernelCache.load_overload, KernelCache.save_overload

def loading(self, sig, target_context):
    asked.append(f"{self.module}.{self.kernel}")
    return load(self, sig, target_context)

def saving(self, sig, data):
    save(self, sig, data)
    kept.append([f"{self.module}.{self.kernel}", [str(one) for one in sigutils.normalize_signature(sig)[0]]])

KernelCache.load_overload, KernelCache.save_overload = loading, saving
STEPS[sys.argv[1]]()
print(json.dumps([asked, kept]))
"""


def main() -> int:
    """Run every use twice: the first time it compiles, the second one tells what Python itself calls."""
    from sparsecv_mio.warmup import STEPS

    kernels: list[list[object]] = []
    uses: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as place:
        environment = os.environ | {"NUMBA_CACHE_DIR": place, "SPARSECV_MIO_HELPERS": "0", "PYTHONPATH": str(ROOT)}
        for use in STEPS:
            for _ in range(2):
                command = [sys.executable, "-c", ONE, use]
                done = subprocess.run(command, check=True, env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True)
                asked, kept = json.loads(done.stdout.splitlines()[-1])
                for one in kept:  # some are saved again with machine code
                    if one not in kernels:
                        kernels.append(one)
            uses[use] = list(dict.fromkeys(asked))
            print(f"{use}: {len(uses[use])} kernels called, {len(kernels)} compiled so far", flush=True)
    rows = [f"    {json.dumps(one)}" for one in kernels]
    kernels_text = ",\n".join(rows)
    text = f'{{\n  "kernels": [\n{kernels_text}\n  ],\n  "uses": {json.dumps(uses, indent=4)}\n}}\n'
    LIST.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
