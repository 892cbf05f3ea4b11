"""`sparsecv batch` and `collect`: a plan, a dry run, two workers, the status, the table."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from sparsecv_mio.cli import run

PLAN = """
[[data]]
design = "toeplitz"
n = 20
p = 3
support = 1
draw = [0, 1]
[vary]
folds = ["3", "50"]
gamma = "0.1"
"""


def test_a_batch_from_plan_to_table(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    plan, out, table = tmp_path / "plan.toml", tmp_path / "out", tmp_path / "table.parquet"
    plan.write_text(PLAN)
    assert run(["batch", str(plan), "--out", str(out), "--dry-run"]) == 0
    assert "4 tasks, 0 done" in capfd.readouterr().out and not out.exists()
    assert run(["batch", str(plan), "--out", str(out), "--workers", "1", "--index", "0", "--of", "2"]) == 0
    assert "2 of 2 tasks done" in capfd.readouterr().out
    assert run(["batch", str(plan), "--out", str(out), "--workers", "1"]) == 1
    shown = capfd.readouterr().out
    assert "2 of 4 tasks done, 0 met a limit, 2 failed" in shown and "failed: toeplitz" in shown
    assert run(["batch", "status", str(out)]) == 1
    assert "2 tasks done, 0 met a limit, 2 failed" in capfd.readouterr().out
    assert run(["collect", str(out), "-o", str(table)]) == 0
    counts = "2 verified, 0 not, 0 with nothing to verify, 2 of failed tasks"
    assert f"4 rows in {table}; {counts}" in capfd.readouterr().out
    frame = pd.read_parquet(table)
    assert sorted(frame["state"]) == ["done", "done", "failed", "failed"]
    assert frame["tau"].dtype == frame["n"].dtype == "Int64" and frame["tau"].isna().sum() == 2
    assert run(["collect", str(out), "-o", str(tmp_path / "pairs.csv"), "--level", "pairs", "--no-verify", "-q"]) == 0
    assert len(pd.read_csv(tmp_path / "pairs.csv")) == 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["batch", "PLAN"], "--out is missing"),
        (["batch", "PLAN", "--out", "o", "--index", "1"], "--index and --of go together"),
        (["batch", "PLAN", "--out", "o", "--index", "2", "--of", "2"], "--index 2 of 2"),
        (["batch", "no.toml", "--out", "o"], "plan"),
        (["batch", "PLAN", "extra", "--out", "o"], "one argument too many"),
        (["batch", "status"], "name a folder of a batch"),
        (["batch", "status", "nowhere"], "is no folder of a batch"),
        (["collect", "nowhere", "-o", "t.csv"], "is no folder of a batch"),
    ],
)
def test_what_is_refused(
    arguments: list[str], message: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    assert run([str(plan) if word == "PLAN" else word for word in arguments]) == 2
    assert message in capfd.readouterr().err
