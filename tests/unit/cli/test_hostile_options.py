"""Whatever is asked: no traceback, one line on what is wrong, the exit code that belongs to it."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from sparsecv_mio.cli import run

NUMBERS = ("9" * 400, "9" * 5000, "nan", "-" + "9" * 400, "1e400", "-1e400", "inf", "0x10", "1_0", "", " ", "٣")
OPTIONS = {  # by command: needed options, and options with a number
    "solve": (
        "--gamma 0.1 --tau 1 --folds 3",
        "--seed --threads --mio-budget --tau --folds --gamma --gap --time-limit",
    ),
    "path": ("--gamma 0.1 --tau 1", "--threads --tau --gamma --gap --time-limit"),
    "near": ("--gamma 0.1 --tau 1 --folds 3", "--seed --threads --tau --folds --most --gamma --within --time-limit"),
    "bounds": ("--gamma 0.1 --tau 1 --folds 3", "--seed --threads --tau --folds --gamma"),
    "fit": ("--gamma 0.1 --tau 1", "--tau --threads --at-most --gamma --gap --time-limit --box"),
    "export": ("--gamma 0.1 --tau 1 --to model.lp", "--tau --gamma"),
    "compare": (
        "--gamma 0.1 --tau 1 --out out --backends native --repeats 1",
        "--tau --seed --threads --repeats --folds --gamma --gap --time-limit",
    ),
    "iacv": ("--lam 0.1 --iterations 3", "--iterations --batch --doubling --early-stop --seed --lam --step"),
    "treecv": ("--folds 3", "--seed --jobs --folds --lam --step"),
    "glru loocv": ("--lam 0.1", "--lam --l1 --width --tol"),
    "glru stepwise": ("--lam 0.1", "--steps --seed --lam --holdout --tol"),
}
NEEDED = {command: needed.split() for command, (needed, _) in OPTIONS.items()}
NUMERIC = {command: numeric.split() for command, (_, numeric) in OPTIONS.items()}
HOSTILE_WORDS = ("x" * 300, "nul\0nul", "\ud800", "", ",", '"', "[/bold]", "loo:", "blocks:", "groups:", "9" * 5000)
QUICK = ("solve", "fit", "iacv", "glru loocv")
COMMANDS = [command if command in QUICK else pytest.param(command, marks=pytest.mark.slow) for command in NEEDED]
WORDS = ("--scale", "--intercept", "--loss", "--penalty", "--folds", "--target", "--features", "--drop", "--method")
PLACES = ("--json", "--checkpoint", "--resume", "--trace", "--to", "--log", "--out")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3))
    rows = np.c_[X, X[:, 0] + 0.1 * rng.normal(size=20) > 0]
    np.savetxt(tmp_path / "data.csv", rows, delimiter=",", header="a,b,c,y", comments="")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Exit code and the error of a command line, which is one line of a readable length."""
    code = run(words)
    captured = capsys.readouterr()
    errors = [line for line in captured.err.splitlines() if line.startswith("sparsecv: error: ")]
    assert "Traceback" not in captured.err
    if code in (0, 3, 130):
        assert not errors, (words, errors)
        return code, ""
    assert code == 2 and len(errors) == 1, (words, code, captured.err)
    assert len(errors[0]) < 2000
    return code, errors[0]


def line(command: str, option: str, value: str, data: str = "data.csv") -> list[str]:
    """A command whose needed options are those of `NEEDED`, except for one of a hostile value."""
    needed = NEEDED[command]
    kept = [word for at in range(0, len(needed), 2) for word in needed[at : at + 2] if needed[at] != option]
    target = [] if option == "--target" else ["--target", "y"]
    return [*command.split(), data, *target, *kept, f"{option}={value}"]


@pytest.mark.parametrize("numbers", [NUMBERS[:3], pytest.param(NUMBERS[3:], marks=pytest.mark.slow)])
@pytest.mark.parametrize("command", COMMANDS)
def test_numbers(command: str, numbers: tuple[str, ...], here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for option in NUMERIC[command]:
        prefix = {"--at-most": "{}:a", "--box": "a:{}:1"}.get(option, "{}")
        for number in numbers:
            told(line(command, option, prefix.format(number)), capsys)
    for ends in ("1:{}", "{}:2", "1:2:{}", "{0}:{0}:3", "1,{}", ":", ",", "::", "1::2"):
        for option in ("--gamma", "--tau"):
            if option in NEEDED[command]:
                told(line(command, option, ends.format("9" * 5000)), capsys)


@pytest.mark.parametrize("command", NEEDED)
def test_numbers_are_plain(command: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for option in NUMERIC[command]:
        prefix = {"--at-most": "{}:a", "--box": "a:{}:1"}.get(option, "{}")
        for number in ("1_0", "٣", "２", "²"):
            code, said = told(line(command, option, prefix.format(number)), capsys)
            assert code == 2 and option in said, (option, number)


@pytest.mark.parametrize("words", [HOSTILE_WORDS[:3], pytest.param(HOSTILE_WORDS[3:], marks=pytest.mark.slow)])
@pytest.mark.parametrize("command", COMMANDS)
def test_words_and_names(command: str, words: tuple[str, ...], here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for option in WORDS:
        for word in words:
            told(line(command, option, word), capsys)


@pytest.mark.parametrize("command", COMMANDS)
def test_places_and_files(command: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo("pipe")
    os.mkfifo("pipe.csv")
    Path("loop").symlink_to("loop")
    Path("zero.csv").symlink_to("/dev/zero")
    before = set(os.listdir())
    for option in PLACES:
        for place in ("x" * 300, "nul\0nul", "loop", "nowhere/x", ".", "data.csv", ""):
            code, _ = told(line(command, option, place), capsys)
            made = option == "--out" and place in ("nowhere/x", ".", "")  # compare makes its folder
            assert code == 2 or (made and command == "compare"), (option, place)
    strange = ".", "pipe", "pipe.csv", "zero.csv", "/dev/zero", "loop"
    for data in ("x" * 300 + ".csv", "nul\0nul.csv", "nowhere.csv", "", *strange):
        code, _ = told(line(command, "--target", "y", data), capsys)
        assert code == 2, data
    for option in ("--checkpoint", "--resume", "--to"):
        assert told(line(command, option, "pipe"), capsys)[0] == 2
    assert set(os.listdir()) - before <= {"out", "model.lp", "nowhere", "compare.csv", "compare.md"}


@pytest.mark.parametrize("place", ["/dev/zero", "pipe", ".", "x" * 300, "nul\0nul", "loop", "data.csv", "large"])
def test_what_is_read_back(place: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo("pipe")
    Path("loop").symlink_to("loop")
    with open("large", "wb") as stream:
        stream.truncate(10**10)
    assert told(["plot", place, "--out", "a.png"], capsys)[0] == 2
    if place != "data.csv":  # a file with a label per row
        code, text = told(line("solve", "--folds", f"file:{place}"), capsys)
        assert code == 2 and "fold file" in text


def test_a_file_that_is_no_table(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Zeros without an end of line, longer than a line may be."""
    monkeypatch.setattr("sparsecv_mio.data.text_tables.LONGEST_LINE", 1 << 16)
    with open("zeros.csv", "wb") as stream:
        stream.truncate(1 << 20)
    assert "line of more than" in told(line("solve", "--target", "y", "zeros.csv"), capsys)[1]


@pytest.mark.parametrize("kind", [np.longdouble, np.complex128, np.float16, object, "datetime64[s]", "U5", bool])
@pytest.mark.parametrize("key", ["X", "y", "names"])
def test_arrays_of_all_kinds(kind: type, key: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    arrays = {"X": rng.normal(size=(12, 2)), "y": rng.normal(size=12), "names": np.array(["a", "b"])}
    arrays[key] = np.zeros(arrays[key].shape).astype(kind) if key != "X" else rng.integers(0, 9, (12, 2)).astype(kind)
    np.savez("data.npz", allow_pickle=True, **arrays)  # type: ignore[arg-type]
    told(line("solve", "--target", "y", "data.npz"), capsys)
    if kind is np.longdouble and key != "names":
        arrays[key] = arrays[key] + np.longdouble("1e4000")
        np.savez("data.npz", **arrays)  # type: ignore[arg-type]
        assert told(line("solve", "--target", "y", "data.npz"), capsys)[0] == 2


def test_near_misses_are_named(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, near in (
        (["solv", "data.csv"], "'solve'"),
        (line("solve", "--scale", "lenght"), "'length'"),
        (line("solve", "--target", "Y"), "'y'"),
        (line("solve", "--features", "A"), "'a'"),
        (line("solve", "--method", "algoritm1"), "'algorithm1'"),
        (line("solve", "--folds", "lo"), "'loo'"),
        (line("solve", "--folds", "block:3"), "'blocks'"),
        (line("iacv", "--loss", "logistik"), "'logistic'"),
        (line("glru loocv", "--penalty", "rigde"), "'ridge'"),
        (["solve", "data.csv", "--targt", "y"], "--target"),
    ):
        assert near in told(words, capsys)[1]


def test_words_in_any_letters(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (
        [*line("solve", "--folds", "LOO"), "--scale", "Length", "--method", "ROUNDS"],
        ["solve", "data.csv", "-t", "y", "--folds", "Blocks:5", "--tau", "LOG", "--gamma", "1"],
        line("iacv", "--penalty", "L2"),
        line("glru loocv", "--penalty", "l2"),
        line("glru loocv", "--reg", "RIDGE"),
        [*line("glru loocv", "--penalty", "elastic-net"), "--l1", "0.1"],
    ):
        assert told(words, capsys)[0] == 0


def test_a_seed_that_changes_nothing_is_told(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, note in (
        ([*line("solve", "--folds", "loo"), "--seed", "3"], True),
        ([*line("solve", "--folds", "loo"), "--seed", "3", "--nested", "3"], False),
        ([*line("bounds", "--folds", "loo"), "--seed", "3"], True),
        ([*line("solve", "--folds", "3"), "--seed", "3"], False),
        (line("solve", "--folds", "loo"), False),
        ([*line("iacv", "--lam", "0.1"), "--seed", "3"], True),
    ):
        assert run(words) == 0
        assert ("--seed 3 has no effect" in capsys.readouterr().err) is note


def test_the_words_of_the_oracles_are_the_libraries() -> None:
    """The command line knows the words without an import of what they name."""
    from sparsecv_mio.oracles import commands
    from sparsecv_mio.oracles.iacv import PENALTIES
    from sparsecv_mio.oracles.losses import CERTIFIED, SMOOTH

    assert set(commands.GLRU_LOSSES) == set(CERTIFIED) and set(commands.IACV_LOSSES) == set(SMOOTH)
    assert set(commands.IACV_PENALTIES) == set(PENALTIES)
