"""First use and later ones: from the source, from a wheel, and warm, as ratios to what numba itself takes.

    make wheel PYTHONS=python3.11
    python scripts/bench/cold_start.py --wheel dist/*cp311*.whl --together 2 8 32 --out build/cold_start.md

The source and the wheel are put into folders of their own, without the user's cache (an empty NUMBA_CACHE_DIR). One
round measures, of whole processes, wall-clock and CPU seconds of every case; the least of `--rounds` counts. Ratios are
to `import numpy, scipy.linalg, numba, pyarrow` (warm cases; with `sklearn.base` beside them for the estimators) and to
one small numba function without a cache (the first use from the source). `--together` starts so many processes at once
on an empty cache and compares what they find.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from _common import deliver, environment, parser_of, table

ROOT = Path(__file__).resolve().parents[2]
IMPORTS = "import numpy, scipy.linalg, numba, pyarrow"
WITH_LEARN = f"{IMPORTS}, sklearn.base"
SMALL = """
import numpy as np
from numba import njit
@njit
def squares(x):
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * x[i]
    return total
squares(np.ones(3))
"""
FIT = """
import warnings
import numpy as np
from sparsecv_mio import BestSubsetRidgeCV
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.standard_normal(({n}, {p}))
BestSubsetRidgeCV(taus=range(1, 6)).fit(X, X[:, :4].sum(axis=1) + rng.standard_normal({n}))
"""
PROSTATE = ["instances/prostate.csv", "--target", "lpsa"]
CASES = {
    "solve prostate": ["solve", *PROSTATE],
    "solve diabetes loo": ["solve", "instances/diabetes.csv", "--target", "y", "--folds", "loo"],
    "fit": ["fit", *PROSTATE, "--tau", "3", "--gamma", "1"],
    "path": ["path", *PROSTATE],
}  # of the command line
FITS = {"estimator, 200 x 10": (200, 10), "estimator, 200 x 65": (200, 65)}
READING = {
    "predict": ["predict", "{record}", PROSTATE[0]],
    "verify": ["verify", "{record}", PROSTATE[0]],
    "check": ["check", "{proof}", PROSTATE[0]],
}  # warm alone: of a record and a proof
HEAD = ["case", "how", "wall", "CPU", "wall ratio", "CPU ratio"]


class Seconds(NamedTuple):
    """Of one process."""

    wall: float
    cpu: float

    def least(self, other: Seconds) -> Seconds:
        """The less of each."""
        return Seconds(min(self.wall, other.wall), min(self.cpu, other.cpu))


class Installed(NamedTuple):
    """A copy of the package, and where its user keeps kernels."""

    how: str
    place: Path
    cache: Path

    def settings(self) -> dict[str, str]:
        """Of its processes."""
        return os.environ | {"PYTHONPATH": str(self.place), "NUMBA_CACHE_DIR": str(self.cache)}


def timed(words: list[str], settings: dict[str, str]) -> Seconds:
    """Run one process of Python."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([sys.executable, "-P", *words], cwd=ROOT, capture_output=True, text=True, env=settings)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 3):
        sys.exit(f"{' '.join(words[:6])} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Seconds(time.perf_counter() - begin, cpu)


def commands() -> Iterator[tuple[str, list[str]]]:
    """Every case that a first use may be."""
    for name, words in CASES.items():
        yield name, ["-m", "sparsecv_mio.cli", *words]
    for name, (n, p) in FITS.items():
        yield name, ["-c", FIT.format(n=n, p=p)]


def copies(place: Path, wheel: Path | None) -> list[Installed]:
    """Return the source as committed or added, and the wheel, each in a folder."""
    source = place / "sdist"
    source.mkdir()
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "sparsecv_mio"], check=True, capture_output=True)
    for name in listed.stdout.decode().splitlines():
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    found = [Installed("sdist", source, place / "cache")]
    if wheel is not None:
        with zipfile.ZipFile(wheel) as packed:
            packed.extractall(place / "wheel")
        unpacked = next((place / "wheel").glob("*.data/purelib"), place / "wheel")
        found.append(Installed("wheel", unpacked, place / "cache"))
    return found


def measured(copy: Installed, place: Path, rounds: int, only: list[str]) -> list[list[object]]:
    """Rows of every case: its first use, and the next one."""
    base = learn = small = Seconds(1e9, 1e9)
    first: dict[str, Seconds] = {}
    warm: dict[str, Seconds] = {}
    told = {"record": str(place / "record.json"), "proof": str(place / "answer.proof")}
    for number in range(rounds):
        base = base.least(timed(["-c", IMPORTS], os.environ | {}))
        learn = learn.least(timed(["-c", WITH_LEARN], os.environ | {}))
        small = small.least(timed(["-c", SMALL], os.environ | {}))
        for case, (name, words) in enumerate(commands()):
            if only and name not in only:
                continue
            settings = copy._replace(cache=place / f"{copy.how}_{number}_{case}").settings()
            for kept in (first, warm):
                kept[name] = timed(words, settings).least(kept.get(name, Seconds(1e9, 1e9)))
        if not only:
            answer = ["-m", "sparsecv_mio.cli", *CASES["solve prostate"]]
            timed([*answer, "--json", told["record"], "--proof", told["proof"]], copy.settings())
            for name, words in READING.items():
                spelled = ["-m", "sparsecv_mio.cli", *(word.format(**told) for word in words)]
                timed(spelled, copy.settings())
                warm[name] = timed(spelled, copy.settings()).least(warm.get(name, Seconds(1e9, 1e9)))
    rows: list[list[object]] = [["imports alone", "", *base, 1.0, 1.0], ["and scikit-learn's", "", *learn, 1.0, 1.0]]
    rows.append(["one numba function", "", *small, "", ""])
    for name, one in first.items():
        rows.append([name, f"{copy.how}, first", *one, one.wall / warm[name].wall, one.cpu / small.cpu])
    for name, one in warm.items():
        least = learn if name in FITS else base
        rows.append([name, f"{copy.how}, warm", *one, one.wall / least.wall, one.cpu / least.cpu])
    return rows


def together(copy: Installed, count: int, place: Path) -> str:
    """Start processes at once on an empty cache; say whether all end well with the same numbers."""
    settings = copy._replace(cache=place / f"{copy.how}_{count}_at_once").settings()
    records = [place / f"{copy.how}_{count}_{number}.json" for number in range(count)]
    words = [
        sys.executable,
        "-P",
        "-m",
        "sparsecv_mio.cli",
        *CASES["solve prostate"],
        "--threads",
        "1",
        "--quiet",
        "--json",
    ]
    begin = time.perf_counter()
    running = [
        subprocess.Popen([*words, str(record)], cwd=ROOT, env=settings, stdout=subprocess.DEVNULL) for record in records
    ]
    codes = [one.wait() for one in running]
    fields = ("status", "tau", "gamma", "cv_error", "lower", "upper", "coefficients")
    found = {json.dumps([json.loads(record.read_text()).get(field) for field in fields]) for record in records}
    kept = list(Path(settings["NUMBA_CACHE_DIR"]).glob("*/*"))
    left = sum(file.suffix not in (".nbc", ".nbl") for file in kept)
    return (
        f"{copy.how}, {count} processes at once: exit codes {sorted(set(codes))}, different answers {len(found)}, "
        f"{len(kept)} files kept, {left} unfinished, {time.perf_counter() - begin:.0f} s"
    )


def main() -> int:
    """Copy, run, print."""
    parser = parser_of(__doc__, out=True)
    parser.add_argument("--wheel", type=Path, help="of this Python; left out: the source alone")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=[], choices=[name for name, _ in commands()])
    parser.add_argument("--together", type=int, nargs="*", default=[], metavar="N")
    asked = parser.parse_args()
    parts = ["# First use and later ones", "", environment(), ""]
    if asked.wheel is not None:
        parts += [f"{asked.wheel.name}: {asked.wheel.stat().st_size / 1e6:.1f} MB", ""]
    parts += [
        "First: wall seconds over those of the next run, CPU seconds over those of one small numba function in a "
        "process of its own. Warm: over the imports alone.", "",
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        for copy in copies(place, asked.wheel):
            parts += [table(HEAD, measured(copy, place, asked.rounds, asked.only)), ""]
            parts += [line for count in asked.together for line in (together(copy, count, place), "")]
            print("\n".join(parts), file=sys.stderr, flush=True)
    deliver("\n".join(parts), asked.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
