"""Files that something is wrong with, folders and disks that cannot be written to: solved, or refused in one line."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from command_lines import changed
from counts import COUNTS
from malformed import GOOD, npz_files, packed_files, parquet_files, records, svmlight_files, text_files
from refused_writes import small_disk, unprivileged

from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.cli import run
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.observers import Checkpoint

TABLES = {
    "text": text_files, "packed": packed_files, "npz": npz_files, "parquet": parquet_files, "svmlight": svmlight_files,
}  # fmt: skip


def outcome(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """`answered`, `rejected` by `verify`, or `refused` by one line on standard error; anything else fails."""
    capsys.readouterr()
    code = run(list(words))
    said = capsys.readouterr()
    if code in (0, 3):
        return "answered"
    if words[0] == "verify" and code == 1:
        assert "Traceback" not in said.err
        return "rejected"
    lines = said.err.strip().splitlines()
    assert code in (1, 2) and len(lines) == 1 and len(lines[0]) < 2000, (words, code, said.err[:2000])
    assert said.out == "" and "Traceback" not in said.err, (words, said)
    return "refused"


@pytest.mark.parametrize("kind", TABLES)
def test_data(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = []
    for name, content in TABLES[kind]().items():
        place = tmp_path / name
        place.write_bytes(content)
        try:
            asked = ["--target", "y", "--folds", "3", "--gamma", "1", "--tau", "1", "-q"]
            found = outcome(capsys, "solve", str(place), *asked, "--json", str(tmp_path / "out.json"))
            if found == "answered":
                assert run(["verify", str(tmp_path / "out.json"), str(place)]) == 0, name
            else:
                assert not (tmp_path / "out.json").exists(), name
        except AssertionError as error:
            wrong.append(str(error)[:600])
            continue
        finally:
            (tmp_path / "out.json").unlink(missing_ok=True)
            place.unlink()
        COUNTS[f"malformed files: {kind} {found}"] += 1
    assert wrong == []
    assert list(tmp_path.iterdir()) == []


def test_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, answer = tmp_path / "good.csv", tmp_path / "good.json"
    table.write_text(GOOD)
    assert (
        run(["solve", str(table), "--target", "y", "--folds", "3", "--gamma", "1,2", "-q", "--json", str(answer)]) == 0
    )
    wrong = []
    for name, content in records(answer.read_text()).items():
        place = tmp_path / name
        place.write_bytes(content)
        page = str(tmp_path / ("r.html" if " is " in name else "r.md"))  # pictures take half a second
        commands = {"verify": [str(table)], "report": ["--data", str(table), "-o", page]}
        for command, more in commands.items():
            try:
                found = outcome(capsys, command, str(place), *more)
                COUNTS[f"malformed files: records, {command} {found}"] += 1
                harmless = name.split(".")[0] in ("unknown field", "BOM") or name.startswith("without")
                assert found != "answered" or command == "report" or harmless, name
            except AssertionError as error:
                wrong.append(f"{command} {name}: {str(error)[:600]}")
    assert wrong == []


def test_checkpoints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Cut off anywhere, of other data, other folds or another grid: refused, and never half believed."""
    table, store = tmp_path / "good.csv", tmp_path / "run.ck"
    table.write_text(GOOD)
    ask = ["solve", str(table), "--target", "y", "--folds", "3", "--gamma", "1,2", "--method", "joint", "-q"]
    assert run([*ask, "--checkpoint", str(store)]) == 0
    whole = store.read_bytes()
    assert run([*ask, "--resume", str(store)]) == 0
    other = tmp_path / "other.csv"
    other.write_text(GOOD.replace("3", "4"))
    wrong = []
    spoilt = {f"{part} hundredths": whole[: len(whole) * part // 100] for part in range(0, 100, 5)}
    rng = np.random.default_rng(0)
    for i in range(20):
        at = int(rng.integers(len(whole)))
        spoilt[f"byte {at}"] = whole[:at] + bytes([whole[at] ^ (1 << i % 8)]) + whole[at + 1 :]
    spoilt |= {"text": b"hello", "zip": whole.partition(b"\n")[2], "digest only": whole.partition(b"\n")[0]}
    for name, content in spoilt.items():
        place = tmp_path / "spoilt.ck"
        place.write_bytes(content)
        if outcome(capsys, *ask, "--resume", str(place)) != "refused" or place.read_bytes() != content:
            wrong.append(name)
        COUNTS["malformed files: checkpoints refused"] += 1
    assert wrong == []
    for change in (["--folds", "4"], ["--gamma", "1"], ["--scale", "none"], ["--intercept", "none"]):
        assert outcome(capsys, *changed(ask, change), "--resume", str(store)) == "refused", change
    assert outcome(capsys, "solve", str(other), *ask[2:], "--resume", str(store)) == "refused"


def test_two_runs_with_one_checkpoint(tmp_path: Path) -> None:
    """The last to write it wins; what either wrote is whole."""
    rng = np.random.default_rng(1)
    data = Dataset.from_arrays(rng.normal(size=(30, 5)), rng.normal(size=30))
    plan, store = make_folds("5", data), tmp_path / "run.ck"
    asked = {"gammas": [0.1, 1.0], "taus": range(1, 5), "method": "joint", "gap": 0.0, "threads": 1}
    whole = cross_validate(data, plan, **asked)
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(2) as both:
        runs = [both.submit(cross_validate, data, plan, **asked, checkpoint=store) for _ in range(2)]
        found = [one.result() for one in runs]
    again = cross_validate(data, plan, **asked, resume=store)
    for record in (*found, again):
        assert verify(record, data, plan).ok
        assert json.loads(record.to_json())["table"] == json.loads(whole.to_json())["table"]
    assert Checkpoint(store) is not None and [path.name for path in tmp_path.iterdir()] == ["run.ck"]


Said = pytest.CaptureFixture[str]
ASKED = ["--target", "y", "--folds", "3", "--gamma", "1", "--tau", "1", "--threads", "1"]
OUTPUTS = ("--json", "--checkpoint", "--trace", "--proof", "--save-held-out")


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that every user may enter, with data in it, and one in it that nobody may write to."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        folder.chmod(0o755)
        (folder / "good.csv").write_text(GOOD)
        (folder / "kept").mkdir()
        (folder / "kept" / "old.json").write_text("years of work")
        (folder / "kept").chmod(0o555)
        yield folder
        (folder / "kept").chmod(0o755)


def one_line(capsys: Said, words: list[str], code: int = 2) -> str:
    """Run a command that ends in this code with one line on standard error."""
    capsys.readouterr()
    assert run(words) == code, words
    said = capsys.readouterr()
    assert said.err.count("\n") == 1 and "Traceback" not in said.err, (words, said.err)
    return said.err


def test_a_folder_that_is_only_read(shared: Path, capsys: Said) -> None:
    solve = ["solve", str(shared / "good.csv"), *ASKED, "-q"]
    record = shared / "good.json"
    report = ["report", str(record), "--data", str(shared / "good.csv"), "-o"]
    # what is loaded at first use is loaded
    assert run([*solve, "--json", str(record), "--proof", str(shared / "proof")]) == 0
    assert run([*report, str(shared / "good.html")]) == 0
    with unprivileged():
        for option in OUTPUTS:
            for name in ("new", "old.json"):
                told = one_line(capsys, [*solve, option, str(shared / "kept" / name)])
                assert "Permission denied" in told or "it is not overwritten" in told, told
                COUNTS["faults: outputs in a folder that is only read"] += 1
        assert "Permission denied" in one_line(capsys, [*report, str(shared / "kept" / "new.html")])
    assert [path.name for path in (shared / "kept").iterdir()] == ["old.json"]
    assert (shared / "kept" / "old.json").read_text() == "years of work"


def test_files_that_may_not_be_read(shared: Path, capsys: Said) -> None:
    record, proof, store = (str(shared / name) for name in ("good.json", "proof", "run.ck"))
    solve = ["solve", str(shared / "good.csv"), *ASKED, "-q"]
    assert run([*solve, "--json", record, "--proof", proof, "--checkpoint", store]) == 0
    (shared / "secret.csv").write_text(GOOD)
    for name in ("secret.csv", record, proof, store):
        (shared / name).chmod(0)
    with unprivileged():
        for words in (
            ["solve", str(shared / "secret.csv"), *ASKED],
            ["verify", record, str(shared / "good.csv")],
            ["check", proof, str(shared / "good.csv")],
            [*solve, "--resume", store],
        ):
            assert "Permission denied" in one_line(capsys, words)
            COUNTS["faults: files that may not be read"] += 1


def test_a_proof_on_a_full_disk(shared: Path, capsys: Said) -> None:
    solve = ["solve", str(shared / "good.csv"), *ASKED, "-q", "--proof", str(shared / "proof")]
    assert run(solve) == 0
    before = (shared / "proof").read_bytes()
    with small_disk(len(before) // 2):
        assert "File too large" in one_line(capsys, solve)
    assert (shared / "proof").read_bytes() == before


def test_proofs_that_are_none(shared: Path, capsys: Said) -> None:
    """Cut off anywhere, altered in a byte, or of other data: refused in one line."""
    data, place = shared / "good.csv", shared / "proof"
    assert run(["solve", str(data), *ASKED, "-q", "--proof", str(place)]) == 0
    whole, rng = place.read_bytes(), np.random.default_rng(0)
    spoilt = {f"{part} hundredths": whole[: len(whole) * part // 100] for part in range(0, 100, 10)}
    for at in rng.integers(10, len(whole), 20).tolist():  # the first ten bytes say nothing of what is packed
        spoilt[f"byte {at}"] = whole[:at] + bytes([whole[at] ^ (1 << int(rng.integers(8)))]) + whole[at + 1 :]
    spoilt |= {"text": b"hello", "record": b"{}", "twice": whole + whole, "more": whole + b"more"}
    for name, content in spoilt.items():
        place.write_bytes(content)
        capsys.readouterr()
        code = run(["check", str(place), str(data)])
        told = capsys.readouterr().err
        assert code in (1, 2) and told.count("\n") == 1 and "Traceback" not in told, (name, code, told)
        COUNTS["malformed files: proofs refused"] += 1
    place.write_bytes(whole)
    data.write_text(GOOD.replace("3", "4"))
    one_line(capsys, ["check", str(place), str(data)], 1)
