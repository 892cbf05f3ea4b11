"""What commands share: reading data, dealing folds, Ctrl-C, time limits, and places of output files."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from repository import INSTANCES

from sparsecv_mio.cli import Began, run
from sparsecv_mio.cli.session import raise_if_interrupted, read_data, run_preparation
from sparsecv_mio.errors import BadInput, OutOfTime
from sparsecv_mio.search.options import SearchOptions

PROSTATE = str(INSTANCES / "prostate.csv")
SOLVE = ["solve", PROSTATE, "--target", "lpsa", "--folds", "3", "--gamma", "0.1", "--tau", "1:2", "--threads", "1"]
Said = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--json", "data.csv"], "the data"),
        (["--json", "a", "--trace", "a"], "the file of --json"),
        (["--checkpoint", "a", "--trace", "./a"], "the file of --checkpoint"),
        (["--json", ""], "--json: the file name is empty; give a name"),
    ],
)
def test_no_output_goes_over_another_file(
    words: list[str], named: str, tmp_path: Path, capsys: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = tmp_path / "data.csv"
    data.write_text(Path(PROSTATE).read_text())
    assert run(["solve", "data.csv", *SOLVE[2:], *words]) == 2
    assert named in capsys.readouterr().err and data.read_text() == Path(PROSTATE).read_text()


def test_data_are_described_by_their_options(tmp_path: Path) -> None:
    file = tmp_path / "d.csv"
    file.write_text('a,"b,c",y,g\n1,2,3,0\n4,5,7,1\n')
    assert read_data(str(file), {"target": "y", "features": '"b,c",a'}, {"folds": ["g"]}).names == ("a", "b,c")
    assert read_data(str(file), {"target": "y", "drop": "a"}, {"folds": ["g"]}).names == ("b,c",)
    with pytest.raises(BadInput, match="exclude each other"):
        read_data(str(file), {"target": "y", "features": "a", "drop": "g"})
    with pytest.raises(BadInput, match="^target: no column is given"):
        read_data(str(file), {})


def test_an_interrupt_while_data_are_read_ends_the_command() -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(KeyboardInterrupt):
        raise_if_interrupted(stop)
    with pytest.raises(KeyboardInterrupt):
        run_preparation(lambda: None, stop, SearchOptions())


def test_a_limit_before_the_data_are_read_gives_no_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: Said, tmp_path: Path
) -> None:
    monkeypatch.setattr("sparsecv_mio.cli.session.run_within_limit", lambda work, deadline, late, grace: late())
    record = tmp_path / "r.json"
    assert run([*SOLVE, "--time-limit", "1", "--json", str(record)]) == 2  # 3 promises an answer
    shown = capsys.readouterr()
    assert not shown.out and not record.exists()
    assert (
        "--time-limit: the limit of 1 s ended before the data were read, so no answer exists; give more time"
    ) in shown.err


def test_work_before_the_search_counts_in_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_preparation(lambda: 3, threading.Event(), SearchOptions(time_limit=600.0)) == 3
    monkeypatch.setattr(Began, "moment", time.monotonic() - 700.0)
    ended = threading.Event()
    with pytest.raises(OutOfTime, match="600 s ended"):
        run_preparation(ended.wait, threading.Event(), SearchOptions(time_limit=600.0))
    ended.set()
