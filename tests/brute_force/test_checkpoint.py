"""A run that is killed and carried on gives the same record; a checkpoint that was altered is refused."""

from __future__ import annotations

import hashlib
import io
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import problems
import pytest
from engines import planned
from numpy.typing import NDArray
from repository import INSTANCES
from runs import new_run, record_of
from slow import slow
from zoo import random_problem

from sparsecv_mio.cli import run as main
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import BadInput, CorruptStore
from sparsecv_mio.files import TEMPORARY
from sparsecv_mio.search import observers
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.observers import Signals
from sparsecv_mio.search.options import Hooks
from sparsecv_mio.search.running_search import drive
from sparsecv_mio.search.state.pairs import Grid

METHODS = ("rounds", "joint", "algorithm1", "grid", "bounds")
SERVO = str(INSTANCES / "servo.csv")
START = 1.0  # seconds that a process takes to begin
SCRIPT = [sys.executable, "-c", "from sparsecv_mio.cli import main; main()"]


def prepared(
    method: str,
    folds: str = "blocks:10",
    gammas: tuple[float, ...] = (0.1, 1.0),
    threads: int = 1,
    seconds: float | None = None,
) -> tuple[Any, Signals]:
    """A method that has not begun, and where it says that its state may be stored."""
    dataset = read_dataset(SERVO, "class")
    signals = Signals()
    asked = standardize(dataset), make_folds(folds, dataset), Grid.of(gammas, range(3, 6), dataset.p)
    return new_run(*asked, seconds, signals, method=method, gap=1e-4, threads=threads), signals


def fields(record: str) -> dict[str, Any]:
    """A record without its work."""
    found = dict(json.loads(record))
    del found["work"]
    return found


def answer(run: Any) -> dict[str, Any]:
    return fields(record_of(run).to_json())


def claims(record: str) -> list[Any]:
    """What a record says in the end: that of a run cut within a step has other bounds of pairs that lose."""
    found = json.loads(record)
    return [found[name] for name in ("status", "gamma", "tau", "support", "coefficients", "cv_error", "intercept")]


def finish(run: Any) -> dict[str, Any]:
    run.run_to_end()
    return answer(run)


def without_table(record: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a record without the table of its pairs, and this table."""
    return {name: value for name, value in record.items() if name != "table"}, record["table"]


class Stop(Exception):
    """The kill."""


@pytest.mark.parametrize("growth", [4, *slow([2])])
@pytest.mark.parametrize(
    ("method", "threads"), [*((method, 1) for method in (*METHODS, "descent")), ("rounds", 2), ("joint", 2)]
)
def test_carried_on_from_any_safe_point(
    method: str, threads: int, growth: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Store at the n-th safe point, drop the run, carry on: n = 1, 4, 16 ..; in the slow suite 1, 2, 4, 8 .."""
    monkeypatch.setattr(*planned(first_node_limit=64))  # several trees of a subproblem
    whole, signals = prepared(method, "blocks:20", threads=threads)
    visits = [0]

    def count() -> None:
        visits[0] += 1

    signals.listen(turn=count)
    expected, n, total = finish(whole), 1, visits[0]
    while n <= total:
        (run, signals), file, left = prepared(method, "blocks:20", threads=threads), tmp_path / f"{n}.ck", [n]

        def stop(run: Any = run, file: Path = file, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] == 0:
                observers.Checkpoint(file).write(run)
                raise Stop

        signals.listen(turn=stop)
        with pytest.raises(Stop):
            finish(run)
        again, signals = prepared(method, "blocks:20", threads=threads)
        observers.resume(again, file)
        signals.listen(turn=count)
        found = finish(again)
        if threads > 1:  # other pairs may have other bounds, because steps end in another order
            found, rows = without_table(found)
            compared, others = without_table(expected)
            for row, other in zip(rows, others, strict=True):
                assert max(row["lower"], other["lower"]) <= min(row["upper"] or np.inf, other["upper"] or np.inf), row
            assert found == compared, (method, n)
        else:
            assert found == expected, (method, n)
        n *= growth
    assert total >= 2 or method == "bounds"  # which is over once it has begun


@pytest.mark.parametrize("stride", [6, *slow([1])])
def test_a_descent_goes_on_with_the_move_that_was_stopped(
    stride: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped at every report, or every sixth: a move that was not tried to its end is judged when it has been."""
    monkeypatch.setattr(observers, "REPORT_SHARE", 0.0)
    case, store, stopped = random_problem(48, rows=30, columns=6), tmp_path / "run.ck", 0
    asked: dict[str, Any] = {"gap": 0.0, "method": "descent"}
    reports: list[Any] = []
    whole = claims(case.solve(progress=reports.append, **asked).to_json())
    for after in range(1, len(reports), stride):
        stop, left = threading.Event(), iter(range(after - 1))

        def progress(_: Any, stop: threading.Event = stop, left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                stop.set()

        cut = case.solve(stop=stop, progress=progress, checkpoint=store, **asked)
        stopped += cut.status == "interrupted"
        assert claims(case.solve(resume=store, **asked).to_json()) == whole
    assert stopped > 3


def test_killed_and_carried_on(tmp_path: Path) -> None:
    """Kill -9, then Ctrl-C, at random moments; each life carries on what the last one stored."""
    rng, store, out = np.random.default_rng(0), tmp_path / "run.ck", tmp_path / "answer.json"
    words = ["solve", SERVO, "--target", "class", "--folds", "blocks:10", "--gamma", "0.01,0.1", "--threads", "1"]
    words += ["-q", "--method", "joint"]
    begin = time.monotonic()
    code = main([*words, "--json", str(tmp_path / "whole.json")])
    assert code in (0, 3)
    length = START + time.monotonic() - begin
    for kill in (signal.SIGKILL, signal.SIGINT):
        option = ["--resume", str(store)] if store.exists() else ["--checkpoint", str(store)]
        process = subprocess.Popen([*SCRIPT, *words, *option], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.2, 1.0) * length)
        process.send_signal(kill)
        assert process.wait() in (code, 130, -kill)
    option = ["--resume", str(store)] if store.exists() else ["--checkpoint", str(store)]
    assert main([*words, *option, "--json", str(out)]) == code
    assert claims(out.read_text()) == claims((tmp_path / "whole.json").read_text())
    left = {path.name for path in tmp_path.iterdir()} - {"run.ck", "answer.json", "whole.json"}
    assert all(name.startswith(TEMPORARY) for name in left)  # of a write that was killed


@pytest.mark.parametrize("method", ["rounds", "joint", *slow(["algorithm1", "grid", "descent"])])
def test_a_run_with_threads_repeats(method: str) -> None:
    first, second = (prepared(method, "blocks:5", (0.01, 0.1), threads=3)[0] for _ in range(2))
    assert finish(first) == finish(second)


def test_ties_and_rounding_do_not_depend_on_threads() -> None:
    """Rounds and grid ask the same of every cell whatever runs beside it."""
    for method in ("rounds", "grid"):
        alone, together = (prepared(method, "blocks:5", (0.01, 1.0), threads=threads)[0] for threads in (1, 3))
        ours, theirs = finish(alone), finish(together)
        assert (ours["request"].pop("threads"), theirs["request"].pop("threads")) == (1, 3)
        assert ours == theirs


@pytest.mark.parametrize("method", sorted(set(METHODS) - {"rounds"}))
def test_a_limit_within_the_first_steps(method: str, tmp_path: Path) -> None:
    """The first steps heed the limit; a record is made all the same; carried on, they are taken from the start."""
    whole = prepared(method)[0]
    (limited, signals), store = prepared(method, seconds=1e-9), tmp_path / "run.ck"
    drive(limited, signals, Hooks(checkpoint=store))
    now = limited.state.bounds()
    assert not limited.state.has_supports.any() and now.floor <= now.ceiling
    dataset = read_dataset(SERVO, "class")
    asked = {"gammas": (0.1, 1.0), "taus": range(3, 6), "method": method, "threads": 1}
    record = cross_validate(dataset, make_folds("blocks:10", dataset), time_limit=1e-9, **asked)
    assert record.status == "limit" and np.isfinite(record.cv_error) and record.lower <= record.upper
    resumed, _ = prepared(method)
    observers.resume(resumed, store)
    assert finish(resumed) == finish(whole)


def test_other_runs_and_damaged_files_are_refused(tmp_path: Path) -> None:
    run = prepared("joint")[0]
    store = tmp_path / "run.ck"
    observers.Checkpoint(store).write(run)
    with pytest.raises(BadInput, match="its gamma differs"):
        observers.resume(prepared("joint", gammas=(0.5,))[0], store)
    with pytest.raises(BadInput, match="its folds differ"):
        observers.resume(prepared("joint", folds="5")[0], store)
    for other in ("grid", "descent"):
        with pytest.raises(BadInput, match="its method differs"):
            observers.resume(prepared(other)[0], store)
    data = store.read_bytes()
    for spoilt in (data[:-1], data[:200], b"", b"x" * 100, data.replace(b"cells", b"bells")):
        store.write_bytes(spoilt)
        with pytest.raises(CorruptStore, match="damaged"):
            observers.read_checkpoint(store)
    with pytest.raises(CorruptStore, match="does not exist; give an existing file, or omit --resume"):
        observers.read_checkpoint(tmp_path / "none.ck")
    with pytest.raises(BadInput, match="does not exist"):
        observers.Checkpoint(tmp_path / "no" / "run.ck").write(run)


def test_command_line_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ask = ["solve", SERVO, "--target", "class", "--tau", "1:2", "--gamma", "1", "--threads", "1"]
    for more in (["--resume", str(tmp_path / "none.ck")], ["--checkpoint", str(tmp_path / "no" / "run.ck")]):
        assert main([*ask, *more]) == 2
        assert str(tmp_path) in capsys.readouterr().err


Arrays = dict[str, NDArray[Any]]
STORED_METHODS = ("rounds", "joint", "algorithm1", "descent")


def small() -> Dataset:
    return problems.linear(0, 24, 4, {0: 1.0})


def solve(method: str, **more: Any) -> Any:
    data = small()
    grid = {"gammas": [0.1, 1.0], "taus": [1, 2]}
    return cross_validate(data, make_folds("3", data), method=method, threads=1, gap=0.0, **grid, **more)


@cache
def good_checkpoint(method: str) -> Arrays:
    """Return the arrays that a method stores."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "good.ck"
        solve(method, checkpoint=path)
        with np.load(io.BytesIO(path.read_bytes().partition(b"\n")[2])) as archive:
            return dict(archive)


def store(path: Path, arrays: Arrays) -> Path:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    payload = buffer.getvalue()
    path.write_bytes(hashlib.sha256(payload).hexdigest().encode() + b"\n" + payload)
    return path


def more_of(array: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate([array.reshape(-1), array.reshape(-1)[:1], array.reshape(-1)[:1]])


CHANGES: dict[str, Callable[[NDArray[Any]], NDArray[Any] | None]] = {
    "missing": lambda array: None,
    "longer": more_of,
    "deeper": lambda array: np.stack([array, array]),
    "text": lambda array: np.full(array.shape, "x"),
    "complex": lambda array: np.zeros(array.shape, dtype=complex),
}


@pytest.mark.parametrize("change", ["missing", "longer", "deeper", "text", *slow(["complex"])])
@pytest.mark.parametrize("method", STORED_METHODS)
def test_every_array_is_checked(method: str, change: str, tmp_path: Path) -> None:
    good, seen = dict(good_checkpoint(method)), good_checkpoint("rounds").keys() if method != "rounds" else ()
    assert len(good) >= 12
    for name, array in good.items():
        if name in seen:
            continue
        altered = CHANGES[change](array)
        if altered is not None and altered.shape == array.shape and altered.dtype == array.dtype:
            continue  # text that is text already is another test's
        forged = {key: value for key, value in good.items() if key != name}
        if altered is not None:
            forged[name] = altered
        try:
            solve(method, resume=store(tmp_path / "forged.ck", forged))
        except (CorruptStore, BadInput) as error:
            assert "checkpoint" in str(error) and "\n" not in str(error)
        else:  # a longer list that means the same, or accounts, which checkpoints of before have not
            same = change == "longer" and name.endswith(("ties", "tie_width"))
            assert same or (change == "missing" and name.endswith("accounts")), name


@pytest.mark.parametrize(
    ("name", "change", "named"),
    [
        ("cells.lower", lambda a: np.full_like(a, np.nan), "lower"),
        ("cells.lower", lambda a: a - 1e9, "lower"),
        ("cells.lower", lambda a: a + 1e9, "lower"),
        ("cells.nominal", lambda a: np.full_like(a, np.nan), "nominal"),
        ("cells.nominal", lambda a: a * 1.001, "nominal"),
        ("cells.nominal", lambda a: a * 0, "nominal"),
        ("cells.support", lambda a: a + 1000, "support"),
        ("cells.support", lambda a: a - 1000, "support"),
        ("cells.pool_columns", lambda a: a + 7, "pool_columns"),
        ("cells.pool_columns", lambda a: a - 7, "pool_columns"),
        ("cells.pool_sizes", lambda a: a * 0, "pool_sizes"),
        ("cells.pool_sizes", lambda a: a - 1, "pool_sizes"),
        ("cells.pool_sizes", lambda a: a[:0], "support"),
        ("cells.ties", lambda a: np.array([[9, 0, 0]]), "ties"),
        ("run.round", lambda a: np.array(-1), "round"),
        ("run.n_mios", lambda a: np.array(-1), "n_mios"),
    ],
)
def test_numbers_out_of_range_are_named(
    name: str, change: Callable[[NDArray[Any]], NDArray[Any]], named: str, tmp_path: Path
) -> None:
    arrays = dict(good_checkpoint("rounds"))
    arrays[name] = change(arrays[name])
    with pytest.raises(CorruptStore, match=named):
        solve("rounds", resume=store(tmp_path / "forged.ck", arrays))


@pytest.mark.parametrize("journal", ["", "[]", "{}", "null", "[" * 5000, '{"steps": [{}]}', '{"steps": 7}'])
def test_a_journal_that_is_none(journal: str, tmp_path: Path) -> None:
    arrays = dict(good_checkpoint("descent")) | {"journal": np.array(journal)}
    with pytest.raises(CorruptStore, match="journal|JSON"):
        solve("descent", resume=store(tmp_path / "forged.ck", arrays))


@pytest.mark.parametrize("trial", [None, ["line", [0.1], [1], False], ["gamma", [0.1], [1, 2], False]])
def test_a_journal_of_moves_from_nowhere(trial: Any, tmp_path: Path) -> None:
    arrays = dict(good_checkpoint("descent"))
    journal = json.loads(str(arrays["journal"])) | {"trial": trial, "over": False}
    del journal["here"]
    arrays["journal"] = np.array(json.dumps(journal))
    with pytest.raises(CorruptStore, match="journal"):
        solve("descent", resume=store(tmp_path / "forged.ck", arrays))


def test_a_declared_shape_without_its_numbers(tmp_path: Path) -> None:
    """The header of an array says 10^15 numbers; nothing of that size is made."""
    import zipfile

    solve("rounds", checkpoint=tmp_path / "good.ck")
    payload = (tmp_path / "good.ck").read_bytes().partition(b"\n")[2]
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(payload)) as old, zipfile.ZipFile(buffer, "w") as new:
        for member in old.infolist():
            text = old.read(member)
            if member.filename == "cells.lower.npy":
                head = io.BytesIO()
                np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": (10**15,)})
                text = head.getvalue()
            new.writestr(member.filename, text)
    forged = buffer.getvalue()
    file = tmp_path / "forged.ck"
    file.write_bytes(hashlib.sha256(forged).hexdigest().encode() + b"\n" + forged)
    with pytest.raises(CorruptStore, match="damaged"):
        observers.read_checkpoint(file)


@pytest.mark.parametrize("place", ["/dev/zero", "/"])
def test_only_files_are_resumed(place: str) -> None:
    with pytest.raises((CorruptStore, BadInput), match="it is a|is a folder"):
        observers.read_checkpoint(place)
