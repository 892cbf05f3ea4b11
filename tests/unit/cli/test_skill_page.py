"""Every command of docs/skill.md runs as it stands there, and what it says of fields and exit codes is so."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from repository import DOCS, INSTANCES

from sparsecv_mio.cli import run

PAGE = (DOCS / "skill.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ sparsecv (.*)$", re.sub(r"\\\n *", "", PAGE), re.MULTILINE)
PROGRAM = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as the page says, in which all its commands have run, in turn."""
    place = tmp_path_factory.mktemp("skill")
    shutil.copyfile(INSTANCES / "prostate.csv", place / "prostate.csv")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        for command in COMMANDS:
            assert run(shlex.split(command)) == 0, command
        for program in PROGRAM:
            exec(compile(program, "docs/skill.md", "exec"), {})
    return place


def fields_of(record: dict[str, object], name: str) -> object:
    found: object = record
    for part in name.split("."):
        assert isinstance(found, dict) and part in found, name
        found = found[part]
    return found


def test_fields_of_the_table_are_in_the_records(folder: Path) -> None:
    record = json.loads((folder / "answer.json").read_text())
    table = PAGE.partition("## The fields to read")[2].partition("### Other records")[0]
    rows = re.findall(r"^\| (`[^|]*) \|", table, re.MULTILINE)
    names = [name for row in rows for name in re.findall(r"`([\w.]+)`", row)]
    assert len(names) > 20
    for name in names:
        fields_of(record, name)
    assert record["schema"] == "sparsecv/2" and record["status"] == "proved" and record["refit"]["proved"]
    assert record["lower"] <= record["cv_error"] <= record["upper"]
    assert {"gamma", "tau", "cv_error", "lower", "upper", "status", "estimate"} <= set(record["table"][0])
    nested = json.loads((folder / "nested.json").read_text())["nested"]
    assert {"error", "standard_error", "optimism"} <= set(nested)
    classes = json.loads((folder / "two.json").read_text())["classes"]
    assert {"accuracy", "auc", "brier", "null_error", "positive"} <= set(classes) and classes["positive"] == "1"


def test_other_records_have_what_it_says_of_them(folder: Path) -> None:
    path = json.loads((folder / "path.json").read_text())
    assert path["schema"] == "sparsecv-path/1" and len(path["path"]) == 8
    assert {"tau", "gamma", "support", "coefficients", "intercept", "objective", "lower", "proved"} <= set(
        path["path"][0]
    )
    near = json.loads((folder / "near.json").read_text())
    assert near["schema"] == "sparsecv-near/1" and {"support", "value"} <= set(near["models"][0])
    assert {"always", "never", "complete_to"} <= set(near["sizes"][0])
    assert (folder / "predictions.csv").read_text().startswith("row,prediction\n1,")
    assert (folder / "classes.csv").read_text().startswith("row,probability,class\n1,")


def test_exit_codes_of_a_script(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    assert run(["solve", "prostate.csv", "--target", "nothing"]) == 2
    assert "nothing" in capsys.readouterr().err
    assert (
        run(
            ["solve", "prostate.csv", "-t", "lpsa", "--method", "grid", "--mio-budget", "1", "-q", "--json", "cut.json"]
        )
        == 3
    )
    cut = json.loads((folder / "cut.json").read_text())
    assert cut["status"] == "limit" and {"tau", "gamma", "time_limit"} == set(cut["advice"])
    forged = json.loads((folder / "answer.json").read_text()) | {"intercept": 7.0}
    (folder / "forged.json").write_text(json.dumps(forged))
    assert run(["verify", "forged.json", "prostate.csv", "-q"]) == 1
