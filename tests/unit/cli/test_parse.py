"""Messages call options as the command line has them, and leave other words alone."""

from __future__ import annotations

import pytest
from repository import INSTANCES

from sparsecv_mio.cli import parse, run
from sparsecv_mio.cli.parse import with_dashes
from sparsecv_mio.declared_options import OPTIONS as DECLARED
from sparsecv_mio.declared_options import TABLE
from sparsecv_mio.errors import BadInput

OPTIONS = ["--tau", "--gamma", "--method", "--one-se", "--folds", "--stability"]

TABLE_FLAGS = [DECLARED[name].flag for name in TABLE]


@pytest.mark.parametrize(
    ("message", "named"),
    [
        ("taus: '99' is out of range", "--tau: '99' is out of range"),
        ("tau 99 is out of range; give a number from 0 to 5", "--tau 99 is out of range; give a number from 0 to 5"),
        ("folds '1000' need 1000 rows", "--folds '1000' need 1000 rows"),
        ("stability 0.5: requires method auto", "--stability 0.5: requires --method auto"),
        ("one_se: a single fold has no standard error", "--one-se: a single fold has no standard error"),
        ("gamma 0.1..1: one-se requires a grid", "--gamma 0.1..1: --one-se requires a grid"),
        ("stability nested, with outer fold 1 held out: no", "stability nested, with outer fold 1 held out: no"),
        ("column: 'tau' is empty", "column: 'tau' is empty"),
        ("folds, tau: 'a' is in both", "--folds, --tau: 'a' is in both"),
        ("one_se, rows: neither", "--one-se, rows: neither"),
        ("--tau: '99' is out of range", "--tau: '99' is out of range"),
    ],
)
def test_names(message: str, named: str) -> None:
    assert with_dashes(message, OPTIONS) == named


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--gap", "2"], "error: --gap: 2 is out of range"),
        (["--stability", "x"], "error: --stability: 'x' is not a weight"),
        (["--method", "bounds", "--one-se"], "error: --one-se: requires --method auto"),
        (["--gamma", "0.1..1", "--stability", "1"], "error: --gamma 0.1..1: --stability requires a grid"),
        (["--gamma", "0.1..1", "--trace", "t"], "--trace requires a grid of gammas, not an interval; give values or"),
        (["--gamma", "0.1..1", "--scheduler", "tcp://a:1"], "error: --gamma 0.1..1: --scheduler requires a grid"),
    ],
)
def test_on_the_command_line_before_data_are_read(
    arguments: list[str], message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["solve", "nowhere.csv", "--target", "y", *arguments]) == 2
    assert message in capfd.readouterr().err


def test_with_data(capfd: pytest.CaptureFixture[str]) -> None:
    data = str(INSTANCES / "prostate.csv")
    assert run(["solve", data, "--target", "lpsa", "--criterion", "common", "--tau", "99", "--gamma", "1"]) == 2
    assert "error: --tau: '99' is out of range" in capfd.readouterr().err
    assert run(["solve", data, "--target", "lpsa", "--nested", "1000", "--gamma", "1"]) == 2
    assert "error: --nested: 1000 outer folds are too many for 97 rows" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("message", "named"),
    [
        ('give sep="semicolon"', "give --sep semicolon"),
        ('na="drop" or na="mean"', "--na drop or --na mean"),
        ('decimal="," and thousands="none": say which', "--decimal , and --thousands none: say which"),
        ('give comment="#" to', "give --comment '#' to"),
        ("or give header=False", "or give --no-header"),
        ("with index_col=0 if", "with --index-col 0 if"),
        ('give drop=["a b", "c,d"], or', "give --drop 'a b,\"c,d\"', or"),
        ('give drop=["it\'s \\"x\\""], or', "give --drop 'it'\"'\"'s \"x\"', or"),
        ("na: unknown word 'x'", "--na: unknown word 'x'"),
        ('solve(gap="x")', 'solve(gap="x")'),
        ("give sc.solve(pd.read_excel('a'), target=...), or", "give sc.solve(pd.read_excel('a'), target=...), or"),
    ],
)
def test_ways_to_read_a_table(message: str, named: str) -> None:
    assert with_dashes(message, TABLE_FLAGS) == named
    assert with_dashes(message, ["--plan"]) == message  # of `batch`, whose plans write them so


def test_names_may_be_quoted() -> None:
    assert parse.names(None, "--drop") is None
    assert parse.names('a b,"c,d" , e', "--drop") == ["a b", "c,d", "e"]
    for text in ("", " ", "a,,b", "a,"):
        with pytest.raises(BadInput, match="^--drop: "):
            parse.names(text, "--drop")
