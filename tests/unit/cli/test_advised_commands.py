"""Every command that the output of another one advises is run as it stands there, and every option tried."""

from __future__ import annotations

import re
import shlex
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from slow import slow

import sparsecv_mio as sc
from sparsecv_mio.cli import run

Said = pytest.CaptureFixture[str]
COMMAND = re.compile(r"sparsecv (?:solve|path|fit|near|check|verify|predict|export|plot|inspect) [^`\n]*", re.M)


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same small table in files of many kinds."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"first one": rng.normal(size=24).round(4), "b": rng.integers(0, 9, 24) / 4})
    frame["y"] = (2.0 * frame["first one"] - frame.b + rng.normal(size=24) / 4).round(4)
    frame.to_csv("plain.csv", index=False)
    frame.to_csv("-dash.csv", index=False)
    frame.to_csv("nohead.csv", index=False, header=False)
    frame.to_csv("semicolon.csv", index=False, sep=";", decimal=",")
    frame.to_parquet("columns.parquet")
    frame.assign(place=["Oslo", "Rome", "Bern"] * 8).to_csv("words.csv", index=False)
    frame.assign(shed=["none", "wood", "brick"] * 8).to_csv("level.csv", index=False)
    gaps = frame.copy()
    gaps.loc[[2, 7, 11, 12], "b"] = np.nan
    gaps.to_csv("gaps.csv", index=False)
    frame.assign(b=frame.b.where(frame.b > 0.3, -999)).to_csv("sentinel.csv", index=False)
    frame.rename(columns={"b": "a;b;c\td"}).to_csv("marks.csv", index=False)


READ = {
    "plain": ("plain.csv", "-t", "y"),
    "words": ("words.csv", "-t", "y", "--encode", "onehot"),
    "none is a word": ("level.csv", "-t", "y", "--no-keep-default-na", "--encode", "onehot"),
    "semicolons": ("semicolon.csv", "-t", "y", "--sep", "semicolon", "--decimal", ","),
    "no header": ("nohead.csv", "-t", "x2", "--no-header"),
    "rows left out": ("gaps.csv", "-t", "y", "--na", "drop"),
    "a number for nothing": ("sentinel.csv", "-t", "y", "--na-values", "-999", "--na", "mean"),
    "parquet": ("columns.parquet", "-t", "y"),
    "a name with marks": ("marks.csv", "-t", "y"),
    "a dash": ("./-dash.csv", "-t", "y"),
}


TABLE = "a,b,y\n" + "".join(f"{k % 5},{k * k % 7},{k % 5 + k % 2}\n" for k in range(20))
WITH_OTHER_LINES = {  # files whose lines are not all names or rows, and the options with which they are read
    "title": ("Report of 3 May\nsite: north\n\n" + TABLE, "--skip-lines 1:3"),
    "title and another separator": ("Report\n" + TABLE.replace(",", ";"), "--skip-lines 1 --sep semicolon"),
    "logger": (TABLE.replace("a,b,y\n", "TOA5,17,17,x\na,b,y\nkg,mg,m\nSmp,Avg,Avg\n"), "--skip-lines 1,3:4"),
    "second header": (TABLE.replace("4,2,4\n", "4,2,4\na,b,y\n", 1), "--skip-lines 7"),
    "units": (TABLE.replace("y\n", "y\nkg,,m\n"), "--skip-lines 2"),
    "total": (TABLE + "Total,,\n", "--skip-lines 22"),
    "sums": (TABLE + "Sum,40,50\n", "--skip-lines 22"),
    "mean and deviation": (TABLE + "Mean,4,5\nSD,1,2\n", "--skip-lines 22:23"),
    "footer": (TABLE + "Source: register\n", "--skip-lines 22"),
    "footer of several lines": (TABLE + '"Note: a\nb"\nSource,x\n', "--skip-lines 22:24"),
    "title and footer": ("Report\n\n" + TABLE + "n = 20\n", "--skip-lines 1:2,24"),
    "two header lines": ("demo,demo,out\n" + TABLE, "--skip-lines 1"),
    "other names above": ("study,part,out\n" + TABLE, "--skip-lines 1"),
    "separators at the ends of lines": (TABLE.replace("\n", ",,\n"), ""),
    "a column without name and values": (re.sub(r"^(\w+),", r"\1, ,", TABLE, flags=re.M), ""),
    "sep=,": ("sep=,\n" + TABLE, "--skip-lines 1"),
    "sep=|": ("sep=|\n" + TABLE.replace(",", "|"), "--skip-lines 1 --sep pipe"),
}


LIKE_OTHERS = ("title", "sums", "footer", "other names above", "sep=,")  # of one more text each


@pytest.mark.parametrize("kind", [*(kind for kind in WITH_OTHER_LINES if kind not in LIKE_OTHERS), *slow(LIKE_OTHERS)])
def test_lines_that_are_no_rows_are_skipped_as_advised(kind: str, capsys: Said) -> None:
    text, options = WITH_OTHER_LINES[kind]
    Path("lines.csv").write_text(text)
    Path("table.csv").write_text(TABLE)
    (given, _), (_, proposal) = followed("solve", capsys), followed("inspect", capsys)
    assert given == options
    run_again([f"{command} --gamma 0.1" for command in COMMAND.findall(proposal)], capsys)
    how: Any = {option[2:].replace("-", "_"): value for option, value in pairs(options)}
    tables = [sc.read_dataset("lines.csv", "y", **how).X.tolist(), sc.read_dataset("table.csv", "y").X.tolist()]
    assert tables[0] == tables[1]


def pairs(options: str) -> list[tuple[str, str]]:
    """Return options with their values."""
    words = options.split()
    return list(zip(words[::2], words[1::2], strict=True))


def followed(command: str, capsys: Said) -> tuple[str, str]:
    """Run a command with the options that each refusal advises; return them and the output."""
    given: dict[str, str] = {}
    asked = [command, "lines.csv", "-t", "y", *(["--gamma", "0.1"] if command == "solve" else [])]
    while run([*asked, *(word for pair in given.items() for word in pair)]):
        advice = dict(re.findall(r"(--skip-lines|--sep) (\S+?)(?=,? |,?$)", capsys.readouterr().err))
        assert advice and advice != given
        given |= advice
    return " ".join(" ".join(pair) for pair in given.items()), capsys.readouterr().out


def advised(capsys: Said) -> list[str]:
    """Return the commands in what was printed."""
    said = capsys.readouterr()
    return COMMAND.findall(said.out) + COMMAND.findall(said.err)


def run_again(commands: list[str], capsys: Said) -> str:
    """Run commands as they stand; return what the last one printed."""
    for command in commands:
        assert run(shlex.split(command)[1:]) == 0, (command, capsys.readouterr().err)
    return capsys.readouterr().out


EACH = pytest.mark.parametrize(  # every reading, and every command with several of them
    ("command", "reading"), [*zip(cycle(["solve", "path", "fit"]), READ.values(), strict=False)], ids=READ
)


@EACH
def test_a_proof_is_checked_as_its_line_says(command: str, reading: tuple[str, ...], capsys: Said) -> None:
    assert run([command, *reading, "--gamma", "0.1", "--tau", "1", "--proof", "-p"]) == 0
    commands = advised(capsys)
    assert len(commands) == 1 and "checked (fast)" in run_again(commands, capsys)
    assert Path("-p.tsv").exists() == (reading[0] not in ("plain.csv", "./-dash.csv", "marks.csv"))
    if Path("-p.tsv").exists():  # the file itself is not such a table: the message names the one that is
        code, said = run(["check", "./-p", reading[0]]), capsys.readouterr().err
        assert code == 2 and "give ./-p.tsv instead" in said or code == 1 and "digests differ" in said


def test_counts_with_a_factor_are_solved_as_inspect_proposes(capsys: Said) -> None:
    rows = [f"{('Oslo', 'Rome', 'Bern')[k % 3]},{k * k % 11},{(k * k % 11 + k % 3) // 4}\n" for k in range(40)]
    Path("counts.csv").write_text("place,a,y\n" + "".join(rows))
    assert run(["inspect", "counts.csv", "-t", "y"]) == 0
    said = capsys.readouterr().out
    squared, poisson = COMMAND.findall(said)
    assert squared.endswith("--count factors") and poisson.endswith("--loss poisson")
    sizes = re.findall("40 rows, . features; 10 folds", said)
    assert sizes == ["40 rows, 2 features; 10 folds", "40 rows, 4 features; 10 folds"]
    run_again([f"{squared} --gamma 0.1", f"{poisson} --gamma 0.1"], capsys)


@EACH
def test_a_record_is_verified_as_its_report_says(command: str, reading: tuple[str, ...], capsys: Said) -> None:
    assert run([command, *reading, "--gamma", "0.1", "--tau", "1", "--json", "./-r.json", "-q"]) == 0
    capsys.readouterr()
    assert run(["report", "./-r.json", "--data", reading[0], "-o", "r.md"]) == 0
    commands = COMMAND.findall(Path("r.md").read_text())
    assert len(commands) == 1
    data = [word if word != "DATA" else reading[0] for word in shlex.split(commands[0])]
    assert "verified" in run_again([shlex.join(data)], capsys)


@pytest.mark.parametrize("command", ["verify", "predict"])
def test_swapped_files_are_put_in_order(command: str, capsys: Said) -> None:
    assert run(["solve", "./-dash.csv", "-t", "y", "--gamma", "0.1", "--json", "./-r.json", "-q"]) == 0
    capsys.readouterr()
    assert run([command, "./-dash.csv", "./-r.json"]) == 2
    commands = advised(capsys)
    assert len(commands) == 1 and run_again(commands, capsys)


@pytest.mark.parametrize(
    ("command", "file"),
    [*((command, "gaps") for command in ("path", "fit", "inspect", "near", "export")),
     *(("solve", file) for file in ("semicolon", "nohead", "gaps", "words", "level"))],
)  # fmt: skip
def test_options_that_a_refusal_names_are_options(command: str, file: str, capsys: Said) -> None:
    """Given what each refusal asks for, at most three, the command runs."""
    words = [f"{file}.csv", "-t", "x2" if file == "nohead" else "y"]
    if command != "inspect":
        words += ["--gamma", "0.1", "--tau", "1"]
    words = [*words, "--to", "model.mps"] if command == "export" else words
    for _ in range(4):
        code = run([command, *words])
        error = capsys.readouterr().err
        if code == 0:
            return
        named = re.search(
            r"(?:give |with |; )(--(?:no-)?[a-z-]+(?: (?!say|to\b|in\b|or\b|if\b)(?:,|[^\s,;)]+))?)", error
        )
        assert code == 2 and named, error
        words += shlex.split(named[1])
    pytest.fail(f"refused at last: {error}")


@pytest.mark.parametrize(
    "grid",
    [
        ["--gamma", "10,20", "--tau", "1:2"],
        ["--gamma", "1e-4,1e-3", "--tau", "1:2"],
        ["--gamma", "1e-4..1e-3", "--tau", "1:2"],
        ["--gamma", "5..50", "--tau", "1:2"],
        ["--gamma", "0.1", "--tau", "0:1"],
    ],
)
def test_an_edge_of_the_grid_says_which_grid_is_wider(grid: list[str], capsys: Said) -> None:
    assert run(["solve", "plain.csv", "-t", "y", *grid]) == 0
    said = capsys.readouterr()
    hint = re.search(r"try (--gamma|--tau) (\S+)", said.out + said.err)
    assert hint is not None, said.out
    options = dict(zip(grid[::2], grid[1::2], strict=True)) | {hint[1]: hint[2].rstrip(".,;)")}
    wider = [word for option in options.items() for word in option]
    assert run(["solve", "plain.csv", "-t", "y", *wider, "-q"]) == 0
