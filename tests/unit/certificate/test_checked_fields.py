"""How every field of a record was treated is read off the checks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sparsecv_mio.certificate.checked_fields import (
    READ,
    RECOMPUTED,
    Checks,
    Failure,
    VerifyReport,
    field_paths,
    section_name,
)
from sparsecv_mio.certificate.parts import ChosenFolds


@dataclass(frozen=True)
class Row:
    tau: int
    lower: float


@dataclass(frozen=True)
class Answer:
    gap: float
    coefficients: dict[str, float]
    table: tuple[Row, ...]
    folds: ChosenFolds
    note: str = "n"
    absent: Row | None = None


ANSWER = Answer(0.0, {"a.b": 1.0}, (Row(1, 0.5), Row(2, 0.25)), ChosenFolds.of([["a.b"]], [1.0]))


def treatments(checks: Checks) -> dict[str, str]:
    return {name: words for words, names in checks.report(ANSWER).fields for name in names}


def test_the_fields_that_a_record_holds() -> None:
    paths = list(dict.fromkeys(field_paths(ANSWER)))
    folds = [f"folds[].{name}" for name in ("fold", "support", "error", "decided")]
    assert paths == ["gap", "coefficients", "table[].tau", "table[].lower", *folds, "note"]
    assert [section_name(path) for path in paths[:3]] == ["gap", "coefficients", "table"]


def test_a_field_is_what_the_checks_that_name_it_say() -> None:
    checks = Checks()
    checks.require_equal("gap", 0.0, 0.0)
    checks.close("coefficients.a.b", 1.0, 1.0, 0.0)
    checks.require(True, "table[1].lower", "")
    checks.require(True, "folds", "names a part, not what is in it")
    assert checks.end_part("first") and checks.require(True, "table[0].lower", "") and checks.end_part("second")
    found = treatments(checks)
    assert found["gap"] == found["coefficients"] == RECOMPUTED
    assert found["table[].lower"] == "bounded: first; second" and found["table[].tau"] == READ
    assert found["folds"] == found["note"] == READ  # alike in all that is in it
    assert checks.report(ANSWER).reread == ("table[].tau, folds, note",)


def test_what_a_part_bounds_and_what_of_it_is_read() -> None:
    checks = Checks()
    checks.mark_bounded_fields("table[].", "folds[].error", "gap")
    checks.leaves("the rest is read", "table[].", "gap")
    checks.end_part("some")
    assert treatments(checks) == {
        "table": "bounded: some; the rest is read", "gap": "bounded: some; the rest is read", "coefficients": READ,
        "folds[].error": "bounded: some", "note": READ,
        **{f"folds[].{name}": READ for name in ("fold", "support", "decided")},
    }  # fmt: skip


def test_a_part_with_a_failure_is_not_verified() -> None:
    checks = Checks()
    assert not checks.require(False, "gap", "is wrong") and not checks.end_part("first") and checks.end_part("second")
    checks.only_read("gap", "for once")
    report = checks.report(ANSWER)
    assert (report.verified, report.failures[0].field, report.reread[0]) == (("second",), "gap", "gap (for once)")
    assert not any("gap" in names for _, names in report.fields) and not Checks().report().fields


def test_a_report_prints_its_verdict_and_disagreements() -> None:
    holds = VerifyReport(("data",), ("work",), ())
    assert str(holds) == "the record agrees with the data: its answer was recomputed and its bounds were verified"
    assert str(replace(holds, caveat="optimality not verified")) == (
        "the record agrees with the data; optimality not verified"
    )
    wrong = replace(holds, failures=(Failure("cv_error", "is 1, computed 2"),))
    assert str(wrong).splitlines() == [
        "the record does not agree with the data",
        "disagrees: cv_error is 1, computed 2",
    ]


def test_a_report_is_true_only_if_the_record_agrees() -> None:
    failed = tuple(Failure(f"table[{k}].lower", "is 1, not 2") for k in range(100))
    agrees, differs = VerifyReport(("fits",) * 100, (), ()), VerifyReport((), ("seconds",) * 100, failed)
    assert agrees and not differs
    assert repr(agrees).startswith("VerifyReport(the record agrees with the data")
    shown = repr(differs)
    assert "does not agree" in shown and "table[0].lower is 1" in shown and "100 disagreements" in shown
    assert len(shown.splitlines()) == 2
