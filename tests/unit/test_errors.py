"""The errors: one family, an exit code each, and suggestions for words that are nearly right."""

from __future__ import annotations

import inspect
import pickle

import pytest

import sparsecv_mio as sc
from sparsecv_mio import errors
from sparsecv_mio.cli import run
from sparsecv_mio.errors import (
    BackendFailed,
    SparseCVError,
    SparseCVWarning,
    VerificationFailed,
    WrongColumn,
    did_you_mean,
)


def test_every_error_belongs_to_the_family_and_has_a_documented_exit_code() -> None:
    found = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, Exception)]
    warned = [kind for kind in found if issubclass(kind, Warning)]
    assert len(warned) == 2 and all(issubclass(kind, SparseCVWarning) for kind in warned)
    found = [kind for kind in found if kind not in warned]
    assert len(found) > 7 and all(issubclass(kind, SparseCVError) for kind in found)
    assert {kind.exit_code for kind in found} <= {1, 2, 3, 4, 130}


def test_what_errors_carry() -> None:
    failed = BackendFailed("it failed", "status 7", "last line")
    assert (str(failed), failed.raw_status, failed.log_tail) == ("it failed", "status 7", "last line")
    assert VerificationFailed("no", "upper").field == "upper"
    column = pickle.loads(pickle.dumps(WrongColumn("target", "z", "is not in the data")))
    assert (str(column), column.role, column.name) == ("target 'z' is not in the data", "target", "z")


@pytest.mark.parametrize(
    ("word", "said"),
    [("LENGHT", " (did you mean 'length'?)"), ("Fold", " (did you mean 'fold'?)"), ("zzz", ""), ("l" * 5000, "")],
)
def test_suggestions(word: str, said: str) -> None:
    assert did_you_mean(word, ("length", "fold")) == said


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [("--lambda", "--gamma"), ("--nfolds", "--folds"), ("--cv", "--folds"), ("--nvmax", "--tau"),
     ("--family", "--loss"), ("--skiprows", "--skip-lines"),
     ("--quite", "--quiet"), ("--n-jobs", "--threads"), ("--gama", "--gamma"), ("--save", "--json")],
)  # fmt: skip
def test_what_others_call_an_option_is_told(theirs: str, ours: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["solve", "no_file.csv", theirs, "1"]) == 2
    assert capsys.readouterr().err == f"sparsecv: error: no option {theirs} (did you mean {ours!r}?)\n"
    for option, said in (
        ("--k", " (did you mean '--folds' or '--tau'?)"),
        ("--nbest", " of `solve`; the equivalent option is --most of near"),
        ("-o", " of `solve`; it is an option of predict, report, plot, collect, table (did you mean '--json'?)"),
        ("--penalty", " of `solve`; it is an option of iacv (did you mean '--gamma'?)"), ("--xyz", ""),
    ):  # fmt: skip
        assert run(["solve", "no_file.csv", option, "5"]) == 2
        assert capsys.readouterr().err == f"sparsecv: error: no option {option}{said}\n"
    assert run(["solve", "no_file.csv", "--xyz"]) == 2
    assert capsys.readouterr().err == "sparsecv: error: no option --xyz\n"
    assert run(["path", "no_file.csv", "--nested", "5"]) == 2
    assert capsys.readouterr().err == "sparsecv: error: no option --nested of `path`; it is an option of solve\n"
    assert run(["solve", "no_file.csv", "--out", "r.json"]) == 2
    assert capsys.readouterr().err.endswith(", compare (did you mean '--json'?)\n")
    with pytest.raises(TypeError, match=r"'alphas' \(did you mean 'gammas'\?\)$"):
        sc.solve("no_file.csv", alphas=[1.0])
