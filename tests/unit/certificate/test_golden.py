"""What earlier versions wrote is read, verified, checked and continued, or refused in one line that says what to do."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from repository import ROOT

from sparsecv_mio.certificate.read_back import read_again, read_record
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.check.main import check_file
from sparsecv_mio.cli import run
from sparsecv_mio.search.observers import CHECKPOINT_SCHEMA, read_trace

GOLDEN = ROOT / "tests" / "golden"
DATA = str(ROOT / "instances" / "prostate.csv")
RECORDS = sorted(GOLDEN.glob("*/*.json"))
PROOFS = sorted(GOLDEN.glob("*/*.proof"))
CHECKPOINTS = sorted(GOLDEN.glob("*/*.ck"))
GRID = ["--folds", "5", "--gamma", "0.01,0.1,1"]


def named(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def test_there_is_one_of_every_kind() -> None:
    schemas = {json.loads(path.read_text(encoding="utf-8"))["schema"].split("/")[0] for path in RECORDS}
    assert schemas == {"sparsecv", "sparsecv-path", "sparsecv-fit", "sparsecv-near", "sparsecv-common"}
    assert {path.stem for path in PROOFS} == {"solve", "path", "fit"} and len(CHECKPOINTS) == 2


def without_new(now: Any, told: Any) -> Any:
    """Leave out what later versions have added and left empty."""
    if isinstance(now, dict) and isinstance(told, dict):
        return {k: without_new(v, told.get(k)) for k, v in now.items() if k in told or v is not None}
    if isinstance(now, list) and isinstance(told, list) and len(now) == len(told):
        return [without_new(a, b) for a, b in zip(now, told, strict=True)]
    return now


@pytest.mark.parametrize("path", RECORDS, ids=named)
def test_records_are_read_and_verified(path: Path) -> None:
    record = read_record(path)
    told = json.loads(path.read_text(encoding="utf-8"))
    assert record.status == told["status"] and record.schema == told["schema"]
    verify(record, read_again(DATA, record.data)).raise_if_failed()
    assert without_new(json.loads(record.to_json()), told) == told, "nothing is lost on the way"


@pytest.mark.parametrize("path", PROOFS, ids=named)
def test_proofs_are_checked(path: Path) -> None:
    for mode in ("fast", "exact"):
        check_file(str(path), DATA, mode)
    if path.stem == "solve":
        record = read_record(path.with_suffix(".json"))
        assert isinstance(record, Record) and record.status == "proved"


@pytest.mark.parametrize("path", CHECKPOINTS, ids=named)
def test_checkpoints_of_another_search_are_refused(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A checkpoint holds the tables of the search that wrote it; 0.1 had another search."""
    place, store = tmp_path / "record.json", tmp_path / "run.ck"
    shutil.copy(path, store)  # a run that is carried on is stored there
    words = ["solve", DATA, "--target", "lpsa", *GRID, "--gap", "0", "--method", "algorithm1"]
    before = store.read_bytes()
    assert run([*words, "--resume", str(store), "--json", str(place), "--threads", "1"]) == 2
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1 and told[0].startswith("sparsecv: error: checkpoint ")
    assert f"not a {CHECKPOINT_SCHEMA} file" in told[0] and "without --resume" in told[0], told
    assert store.read_bytes() == before and not place.exists()


def test_traces_are_read() -> None:
    head, moments = read_trace(GOLDEN / "0.1-96a80cb" / "run.trace")
    assert head["gammas"] == [0.01, 0.1, 1.0] and moments[-1]["lower"] <= moments[-1]["upper"]


def later_record(place: Path) -> list[str]:
    text = (GOLDEN / "0.1-adff868" / "solve.json").read_text(encoding="utf-8")
    place.write_text(text.replace("sparsecv/2", "sparsecv/99", 1), encoding="utf-8")
    return ["verify", str(place), DATA]


def later_proof(place: Path) -> list[str]:
    lines = gzip.decompress((GOLDEN / "0.1-adff868" / "solve.proof").read_bytes()).splitlines(keepends=True)
    body = b"".join(lines[:-1]).replace(b"sparsecv-proof/1", b"sparsecv-proof/99", 1)
    end = json.dumps({"kind": "end", "sha256": hashlib.sha256(body).hexdigest()}).encode()
    place.write_bytes(gzip.compress(body + end + b"\n"))
    return ["check", str(place), DATA]


def later_checkpoint(place: Path) -> list[str]:
    payload = CHECKPOINTS[0].read_bytes().partition(b"\n")[2]
    with np.load(io.BytesIO(payload)) as stored:
        state: dict[str, Any] = dict(stored)
    state["key"] = np.array(str(state["key"]).replace("sparsecv-checkpoint/", "sparsecv-checkpoint/9", 1))
    buffer = io.BytesIO()
    np.savez(buffer, **state)
    place.write_bytes(hashlib.sha256(buffer.getvalue()).hexdigest().encode() + b"\n" + buffer.getvalue())
    return ["solve", DATA, "--target", "lpsa", *GRID, "--resume", str(place)]


@pytest.mark.parametrize("made", [later_record, later_proof, later_checkpoint])
def test_those_of_a_later_version_are_refused_in_one_line(
    made: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(made(tmp_path / "later")) in (1, 2)
    told = capsys.readouterr().err
    assert (
        told.count("\n") == 1 and "wrote" in told and ("version of sparsecv-mio" in told or "the version that" in told)
    ), told
