"""One table in every format that is read, and what a refusal looks like."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.errors import BadInput

RNG = np.random.default_rng(3)
X = RNG.standard_normal((30, 4)) * 10.0 ** RNG.integers(-5, 5, (30, 4))
Y = RNG.standard_normal(30)
NAMES = ["x1", "x2", "x3", "x4"]
FRAME = pd.DataFrame(X, columns=NAMES).assign(y=Y)


def write(folder: Path, suffix: str) -> Path:
    path = folder / f"data{suffix}"
    if suffix in (".csv", ".tsv"):
        FRAME.to_csv(path, index=False, sep="," if suffix == ".csv" else "\t")
    elif suffix == ".parquet":
        FRAME.to_parquet(path, row_group_size=7)
    elif suffix == ".npz":
        np.savez(path, X=X, y=Y, names=np.array(NAMES))
    else:
        lines = [
            f"{y!r} " + " ".join(f"{j}:{v!r}" for j, v in enumerate(row, start=1))
            for y, row in zip(Y.tolist(), X.tolist(), strict=True)
        ]
        path.write_text("# comment\n" + "\n".join(lines) + "\n")
    return path


def refused(message: str, path: Path, target: str | int, **options: list[str]) -> None:
    with pytest.raises(BadInput) as caught:
        read_dataset(path, target, **options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
