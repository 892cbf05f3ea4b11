"""Two records compared by their answers: the mode `--same-answer` of `same_records.py`, and the column of `guard.py`.

Two searches that order their work differently prove different bounds within the gap, so a bound is compared only by
the interval that it belongs to. The answers are the same if

* schema, status, pair, data and folds are equal;
* every number that both records state as exact is equal, up to `VALUE_RTOL` and the smaller rounding part of both;
* every two intervals that contain the same number overlap. Such intervals certify, so their overlap has no tolerance.

With an interval of gamma (`--gamma LO..HI`) the best gamma is a real number that is known up to the gap: tau must be
equal and gamma may differ, as long as the CV errors agree up to the requested gap.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from _record_difference import Difference, apart

Record = Mapping[str, Any]
VALUE_RTOL = 1e-8  # relative; smooth losses are fitted to a few 1e-9
VALUES = ("cv_error", "objective", "value", "best", "error", "standard_error")  # the number of a part, by its field
PARTS = ("table", "path", "sizes", "models", "refit", "least", "one_se", "nested")


@dataclass(frozen=True)
class Claim:
    """The interval that a record states for one number, and the number itself where it is exact."""

    lower: float
    upper: float
    value: float | None = None

    @property
    def rounding(self) -> float:
        """Largest rounding error that the record admits for the number."""
        return max(self.upper - self.value, 0.0) if self.value is not None and math.isfinite(self.upper) else 0.0


def _presence(is_there: bool) -> str:
    """Return the word for a record or a claim that is there, or is not."""
    return "stated" if is_there else "missing"


def difference_of_answers(before: Record | None, after: Record | None) -> Difference:
    """Return the differences between the answers of two records."""
    found = Difference()
    if before is None or after is None:
        if before is not after:
            found.note("record", _presence(before is not None), _presence(after is not None), math.inf)
        return found
    has_gamma_interval = bool(before.get("continuous"))
    first_facts, second_facts = facts_of(before), facts_of(after)
    for name, fact in first_facts.items():
        if fact != second_facts[name] and not (has_gamma_interval and name == "gamma"):
            found.note(name, fact, second_facts[name], math.inf)
    rtol = max(VALUE_RTOL, before["request"]["gap"]) if has_gamma_interval else VALUE_RTOL
    first_claims, second_claims = dict(claims_of(before)), dict(claims_of(after))
    for name in sorted(first_claims.keys() | second_claims.keys()):
        if name in first_claims and name in second_claims:
            _compare_claims(found, name, first_claims[name], second_claims[name], rtol)
        elif not has_gamma_interval:
            found.note(name, _presence(name in first_claims), _presence(name in second_claims), math.inf)
    return found


def _compare_claims(found: Difference, name: str, first: Claim, second: Claim, rtol: float) -> None:
    """Note a disagreement of two claims on one number."""
    if max(first.lower, second.lower) > min(first.upper, second.upper):
        found.note(
            f"{name}: interval",
            f"[{first.lower!r}, {first.upper!r}]",
            f"[{second.lower!r}, {second.upper!r}]",
            math.inf,
        )
    if first.value is None or second.value is None:
        return
    allowed = rtol * max(abs(first.value), abs(second.value)) + min(first.rounding, second.rounding)
    if abs(first.value - second.value) > allowed:
        found.note(name, first.value, second.value, apart(first.value, second.value))


def facts_of(record: Record) -> dict[str, Any]:
    """Return the fields that must be equal."""
    facts = {name: record.get(name) for name in ("schema", "status", "gamma", "tau")}
    facts["data.fingerprint"] = record["data"]["fingerprint"]
    folds = record.get("folds")
    facts["folds.digest"] = folds["digest"] if isinstance(folds, Mapping) else None
    return facts


def claims_of(record: Record) -> Iterator[tuple[str, Claim]]:
    """Yield every certified interval and exact number of a record of any schema, with a name."""
    yield "answer", claim_from(record)
    parts = {name: record.get(name) for name in PARTS}
    parts["folds"] = record.get("folds") if isinstance(record.get("folds"), list) else None  # of `bounds`
    parts["nested folds"] = (record.get("nested") or {}).get("folds")
    stability = record.get("stability") or {}
    parts["stability"] = {
        "gamma": record.get("gamma"), "tau": record.get("tau"),
        "lower": stability.get("instability_lower"), "upper": stability.get("instability_upper"),
    }  # fmt: skip
    parts["stability choice"] = stability.get("chosen")
    for part, content in parts.items():
        for row in content if isinstance(content, list) else [content] if content else []:
            yield f"{part}{_key_of(row, with_support=part == 'models')}", claim_from(row)


def _key_of(row: Record, with_support: bool) -> str:
    """Return the words that identify a row within its part."""
    words = [f"{name} {row[name]}" for name in ("gamma", "tau", "fold") if row.get(name) is not None]
    words += [" ".join(row["support"])] if with_support else []
    return f" ({', '.join(words)})" if words else ""


def claim_from(row: Record) -> Claim:
    """Return the claim of a record or of one of its parts; a missing bound is infinite."""
    lower, upper = row.get("lower"), row.get("upper")
    value = next((row[name] for name in VALUES if row.get(name) is not None), None)
    return Claim(
        -math.inf if lower is None else lower, math.inf if upper is None else upper, value if _is_exact(row) else None
    )


def _is_exact(row: Record) -> bool:
    """Return True if a row states its number as exact: neither an estimate nor a bound."""
    if "estimate" in row:
        return row["estimate"] is False
    if "proved" in row:
        return row["proved"] is True
    if "status" in row:
        return row["status"] == "proved"
    return "value" in row or "best" in row  # a listed model
