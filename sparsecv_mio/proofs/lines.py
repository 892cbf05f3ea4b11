"""The file of a proof: lines of JSON, compressed."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
from collections.abc import Iterable, Iterator
from typing import Any

from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.errors import BadInput
from sparsecv_mio.proofs.trees import Units

FORMAT = "sparsecv-proof/1"


def head_of(data: StandardData, gammas: Iterable[float], taus: Iterable[int], plan: FoldPlan | None) -> dict[str, Any]:
    """Return the first line of a proof: the data and folds by digest, the coordinates, the grid.

    Parameters
    ----------
    data : StandardData
    gammas, taus : iterables
        The grid.
    plan : FoldPlan or None
    """
    source = data.dataset
    head: dict[str, Any] = {
        "format": FORMAT,
        "data": {
            "n": source.n, "p": source.p, "names": list(source.names), "target": source.target,
            "digest": source.fingerprint,
        },
        "columns": data.columns.tolist(), "units": Units.of(data).exponent.tolist(),
        "scale": str(data.scale), "intercept": str(data.intercept),
        "gammas": [float(gamma) for gamma in gammas], "taus": [int(tau) for tau in taus],
    }  # fmt: skip
    if plan is not None:
        head["left"] = [plan.left_out(j).tolist() for j in range(plan.k)]
        same = plan.left is None
        head["scored"] = None if same else [plan.scored_rows(j).tolist() for j in range(plan.k)]
        head["folds"] = {"spec": plan.spec, "seed": plan.seed, "digest": plan.digest}
    return head


def packed(lines: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    """Yield the compressed file of a proof as its lines come, the last one included.

    Raises
    ------
    BadInput
        A number is none of JSON.
    """
    digest, buffer = hashlib.sha256(), io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=6, mtime=0) as stream:
        for line in lines:
            try:
                text = json.dumps(line, separators=(",", ":"), allow_nan=False).encode() + b"\n"
            except ValueError:
                raise BadInput("--proof: numbers of the proof leave the range of floats: change the units") from None
            digest.update(text)
            stream.write(text)
            yield buffer.getvalue()
            buffer.seek(0)
            buffer.truncate()
        end = {"kind": "end", "sha256": digest.hexdigest()}
        stream.write(json.dumps(end, separators=(",", ":")).encode() + b"\n")
    yield buffer.getvalue()
