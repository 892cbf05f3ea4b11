"""The commands of README.md run, print the screen that it shows, and its text stays short."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from repository import ROOT

from sparsecv_mio.cli import run

PAGE = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^    \$ sparsecv (.*)$", PAGE, re.MULTILINE)


def words(text: str) -> str:
    """Return a text with every run of white space as one blank: lines wrap at the width of the terminal."""
    return " ".join(text.split())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to write to, with copies of the data of the page."""
    (tmp_path / "instances").mkdir()
    for name in set(re.findall(r"instances/\w+\.csv", PAGE)):
        shutil.copyfile(ROOT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_first_command_prints_the_screen_of_the_page(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(shlex.split(COMMANDS[0])) == 0
    screen = words(capsys.readouterr().out)
    assert screen.startswith("certified choice (gap <= 1e-4): tau = 7 features") and screen in words(PAGE)


def test_the_checks_state_what_the_comments_quote(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in COMMANDS[1:]:
        line, _, comment = command.partition("    # ")
        assert run(shlex.split(line)) == 0, line
        assert comment.rstrip(".") in capsys.readouterr().out
