"""Folders and disks that cannot be written to, and proofs that are none: nothing lost, one line each.

Kills, Ctrl-C, foreign checkpoints and malformed files have tests of their own; results/correctness.md lists them all.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from counts import COUNTS
from malformed import GOOD
from small_disk import small_disk
from unprivileged import unprivileged

from sparsecv_mio.cli import run

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
