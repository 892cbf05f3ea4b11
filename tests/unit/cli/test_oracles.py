"""What the commands of the oracles share: the bar, the JSON text, the words on scale and intercept."""

from __future__ import annotations

import io
import json
import sys

import pytest

from sparsecv_mio.cli.oracles import as_given, counting_bar, text_of


@pytest.mark.parametrize(
    ("scale", "intercept", "said"),
    [
        ("none", "none", "columns as in the file, not scaled (--scale), no intercept (--intercept)"),
        ("length", "none", "no intercept (--intercept)"),
        ("none", "fold", "columns as in the file, not scaled (--scale)"),
        ("variance", "global", ""),
    ],
)
def test_columns_as_given_are_said(scale: str, intercept: str, said: str) -> None:
    assert as_given({"scale": scale, "intercept": intercept}) == said


def test_text_is_strict_json() -> None:
    assert json.loads("".join(text_of({"a": 0.1, "b": [1, None]})())) == {"a": 0.1, "b": [1, None]}
    with pytest.raises(ValueError, match="not JSON compliant"):
        text_of({"a": float("nan")})()


class Terminal(io.StringIO):
    """A standard error that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_off_a_terminal_there_is_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sparsecv_mio.cli.live.LINE_SECONDS", 1000.0)
    with counting_bar(False, "rows") as early:
        assert early is not None
        early(1, 5)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sparsecv_mio.cli.live.LINE_SECONDS", 0.0)
    with counting_bar(False, "rows") as line:
        assert line is not None
        line(2, 5)
    assert capsys.readouterr().err == "2 of 5 rows\n"


def test_the_bar_is_drawn_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with counting_bar(True, "rows") as quiet:
        assert quiet is None
    with counting_bar(False, "rows") as draw:
        assert draw is not None
        for done in range(1001):
            draw(done, 1000)
    assert "1000/1000" in screen.getvalue() and "rows" in screen.getvalue()
