"""Compile every kernel for a plain processor into the folder of the package that a wheel takes along.

    python scripts/ship_kernels.py

By the interpreter whose wheel it is to be, with the dependencies of the package installed; `make wheel` does it for
every interpreter at hand. On x86 the kernels are for x86-64-v3, processors of 2013 and later.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COMPILED = ROOT / "sparsecv_mio" / "kernels" / "compiled"
V3 = "avx avx2 bmi bmi2 cx16 f16c fma fxsr lzcnt mmx movbe popcnt sahf sse sse2 sse3 sse4.1 sse4.2 ssse3 xsave"
PLAIN = {
    "x86_64": ("x86-64-v3", V3),
    "amd64": ("x86-64-v3", V3),
    "aarch64": ("generic", "neon"),
    "arm64": ("apple-m1" if sys.platform == "darwin" else "generic", "neon"),
}  # by the name of the machine: the processor and its features, as LLVM calls them
MANIFEST = """
import json, numba
from numba.core.registry import cpu_target
from sparsecv_mio.kernels.kernel_cache import PYTHON
from sparsecv_mio.warmup import declared_kernels
triple, processor, features = cpu_target.target_context.codegen().magic_tuple()
made = {"numba": numba.__version__, "python": PYTHON, "triple": triple, "processor": processor, "features": features,
        "kernels": sorted(declared_kernels())}
print(json.dumps(made))
"""


def main() -> int:
    """Compile, copy, describe."""
    processor, features = PLAIN[platform.machine().lower()]
    for stale in (COMPILED, ROOT / "build" / "lib"):
        shutil.rmtree(stale, ignore_errors=True)
    with tempfile.TemporaryDirectory() as place:
        environment = os.environ | {
            "NUMBA_CACHE_DIR": place, "PYTHONPATH": str(ROOT), "NUMBA_CPU_NAME": processor,
            "NUMBA_CPU_FEATURES": ",".join(f"+{one}" for one in features.split()),
        }  # fmt: skip
        command = [sys.executable, "-m", "sparsecv_mio.cli", "warmup"]
        subprocess.run(command, check=True, cwd=ROOT, env=environment)
        made = subprocess.run(
            [sys.executable, "-c", MANIFEST], check=True, cwd=ROOT, env=environment, capture_output=True, text=True
        ).stdout
        COMPILED.mkdir(mode=0o755)
        for file in sorted(Path(place).glob("*/*.nbc")):
            shutil.copyfile(file, COMPILED / file.name)
    missing = set(json.loads(made)["kernels"]) - {file.name.rsplit("-", 3)[0] for file in COMPILED.glob("*.nbc")}
    if missing:
        shutil.rmtree(COMPILED)
        raise SystemExit(f"`sparsecv warmup` compiles no {', '.join(sorted(missing))}: a step of warmup.py has to")
    (COMPILED / "manifest.json").write_text(made, encoding="utf-8")
    sizes = [file.stat().st_size for file in COMPILED.glob("*.nbc")]
    print(f"{len(sizes)} kernels, {sum(sizes) / 1e6:.1f} MB, for {json.loads(made)['processor']}, in {COMPILED}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
