"""Parts that the records of several commands contain, and the base class that reads and writes records.

The package msgspec writes, reads and validates the JSON; frozen dataclasses define the schema. JSON has no infinity: an
unknown bound (+inf) in a field of type `Bound` is written as null and read back as +inf. If a record is invalid, the
error message names the field.
"""

from __future__ import annotations

import json
import math
import os
import platform
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_type_hints

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.data.reading_options import OPPOSITES, Applied, Reading
from sparsecv_mio.digits import format_number, several
from sparsecv_mio.errors import CorruptStore, SparseCVError, naming_extras
from sparsecv_mio.files import write_text
from sparsecv_mio.model_space import CoefficientBounds, Restrictions
from sparsecv_mio.targets import DEFAULT_LOSS, FIELDS_OF_VALUES, Loss, Target, find_loss_of_values
from sparsecv_mio.version import __version__
from sparsecv_mio.words import Encode

if TYPE_CHECKING:
    import pandas as pd
    from _typeshed import DataclassInstance


import re
from functools import partial
from typing import TYPE_CHECKING, Annotated, TypeVar

import msgspec

from sparsecv_mio.units import GAMMA_RANGE, LARGEST

T = TypeVar("T")
Kind = TypeVar("Kind", bound=type)
NAME_RECORD = "; name a record of `solve`, `path`, `near` or `fit`"  # remedy for a file that is not a record
AT = " - at `$"  # text before the path in messages of msgspec
Number = Annotated[float, msgspec.Meta(ge=-LARGEST, le=LARGEST)]
Gamma = Annotated[float, msgspec.Meta(ge=0.0, le=GAMMA_RANGE[1])]
PositiveGamma = Annotated[float, msgspec.Meta(ge=GAMMA_RANGE[0], le=GAMMA_RANGE[1])]  # a bound of an interval
Seconds = Annotated[float, msgspec.Meta(ge=0.0, le=LARGEST)]
Count = Annotated[int, msgspec.Meta(ge=0, le=10**18)]

if TYPE_CHECKING:
    Bound = float
    Coefficients = Mapping[str, float]
else:  # separate classes, since msgspec calls `_custom` for those only

    class Bound(float):
        """A bound that may be unknown."""

    class Coefficients(dict):
        """Numbers by name; with a plain dict, errors of msgspec would not name the key."""


def with_short_repr(kind: Kind) -> Kind:
    """Return a dataclass whose `repr` has at most three lines, so that a notebook can show a part of a record.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @with_short_repr
    ... @dataclass
    ... class Fits:
    ...     error: float
    ...     supports: tuple[tuple[str, ...], ...]
    ...     note: str | None = None
    >>> Fits(0.1234567, (("a",), ("b",), ("a", "b"), ("c",)))
    Fits(error=0.123457, supports=<4 values>)
    """

    def show(self: Any) -> str:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        parts = [f"{name}={_abbreviate_value(value)}" for name, value in values.items() if value is not None]
        return "\n".join(textwrap.wrap(f"{kind.__name__}({', '.join(parts)})", 110, max_lines=3, placeholder=" ...)"))

    kind.__repr__ = show  # type: ignore[assignment]
    return kind


def _abbreviate_value(value: Any) -> str:
    if isinstance(value, float):
        return format_number(value)
    if is_dataclass(value):
        return f"{type(value).__name__}(...)"
    if isinstance(value, Mapping | list | tuple) and (len(value) > 3 or any(map(is_dataclass, value))):
        return f"<{several(len(value), 'value')}>"
    return f"{value!r:.60}"


def plain(value: Any, hint: Any, field: str) -> Any:
    """Return a value as JSON material: dict, list, str, int, float, bool, None.

    Parameters
    ----------
    value : object
        Value of the field; numpy numbers count as numbers.
    hint : type
        Annotated type of the field.
    field : str
        Name of the field in messages.

    Returns
    -------
    object
        JSON material, or an iterator of `Encoded` lines if the value has the method `json_items`.

    Raises
    ------
    ValueError
        If a number has no JSON form (NaN, or an infinity outside a `Bound`), or if a value could not be read back. This
        is a bug of the caller, and the value is never written.
    """
    if hasattr(value, "json_items"):
        return value.json_items()
    try:
        builtins = msgspec.convert(msgspec.to_builtins(value, enc_hook=_builtin), hint, dec_hook=_check)
    except msgspec.ValidationError as error:
        raise ValueError(f"record {_sentence(error, field)}") from None
    # msgspec writes +inf as null; only unknown bounds are infinite here
    return msgspec.json.decode(msgspec.json.encode(builtins, enc_hook=_builtin))


def _builtin(value: Any) -> Any:
    if isinstance(value, dict):
        return dict(value)
    return value.item() if hasattr(value, "item") else float(value)


def convert_json(value: Any, hint: Any, place: str = "") -> Any:
    """Return JSON material converted to a type, for use in `from_json_items`; errors are reported to msgspec.

    Parameters
    ----------
    place : str
        Path from the field to the value (`[3].error`).

    Raises
    ------
    ValueError
        If the value does not have this type.
    """
    try:
        return msgspec.convert(value, hint)
    except msgspec.ValidationError as error:
        raise ValueError(f"{error}{AT}{place}`") from None


def _custom(kind: Any, value: Any, unknown: float | None) -> Any:
    """Return an object of a type unknown to msgspec; `unknown` is the value of an unknown bound."""
    if kind is Bound:
        return Bound(math.inf if value == unknown else convert_json(value, Number))
    if hasattr(kind, "from_json_items"):
        return kind.from_json_items(value)
    return kind({name: convert_json(inner, Number, f".{name}") for name, inner in convert_json(value, dict).items()})


_check, _read = partial(_custom, unknown=math.inf), partial(_custom, unknown=None)


def read_json_value(value: Any, kind: type[T], field: str) -> T:
    """Return JSON material converted to a type.

    Parameters
    ----------
    value : object
        Material as returned by `plain`.
    field : str
        Name of the field in messages.

    Raises
    ------
    CorruptStore
        As for `decode`.
    """
    try:
        return msgspec.convert(value, kind, dec_hook=_read)
    except msgspec.ValidationError as error:
        raise CorruptStore(f"record: {_sentence(error, field)}") from None


def decode(text: str, kind: type[T]) -> T:
    """Return strict JSON (no NaN, no Infinity) converted to a type.

    Unknown fields are ignored, so that records with later additions can be read.

    Raises
    ------
    CorruptStore
        If a field is missing or has the wrong type or size; the message names its path (`table[3].gamma`). If the text
        is not JSON, the message gives the position of the error.
    """
    try:
        return msgspec.json.decode(text, type=kind, dec_hook=_read)
    except msgspec.ValidationError as error:
        raise CorruptStore(f"record: {_sentence(error)}") from None
    except msgspec.DecodeError as error:
        raise CorruptStore(f"record: not a JSON file ({_locate_json_error(error, text)}){NAME_RECORD}") from None
    except UnicodeEncodeError:
        raise CorruptStore(f"record: not a JSON file (half of a surrogate pair){NAME_RECORD}") from None
    except RecursionError:
        raise CorruptStore(f"record: not a record (nested too deeply){NAME_RECORD}") from None


_WORDS = {
    "array": "a list", "object": "an object", "str": "a text", "int": "an integer", "float": "a number",
    "bool": "true or false",
}  # fmt: skip


def _sentence(error: msgspec.ValidationError, field: str = "") -> str:
    """Return an error of msgspec as a sentence with the path of the field.

    An error inside `_custom` has several paths, the innermost first.
    """
    message, *places = str(error).split(AT)
    path = (field + "".join(place.rstrip("`") for place in reversed(places))).lstrip(".")
    if missing := re.fullmatch(r"Object missing required field `(.*)`", message):
        return f"field {path}.{missing[1]} is missing".replace(" .", " ")
    words = re.sub(r"`(.*?)`", lambda kind: " or ".join(_WORDS.get(k, k) for k in kind[1].split(" | ")), message)
    if words.startswith("Expected "):
        words = words.replace("Expected", "must be", 1).replace(", got", ", not", 1)
    elif not words.startswith("must be"):
        words = f"is not valid ({words[0].lower()}{words[1:]})"
    return f"field {path} {words}" if path else f"it {words}"


def _locate_json_error(error: msgspec.DecodeError, text: str) -> str:
    """Return the position at which a text is no longer JSON, and the text before it."""
    match = re.fullmatch(r"JSON is malformed: (.*) \(byte (\d+)\)", str(error))
    if match is None:
        return str(error).lower()
    before = text.encode()[: int(match[2])].decode()
    line = before.count("\n") + 1
    after = f", after {before[-40:].lstrip()!r}" if before.strip() else ""
    return f"{match[1]}, line {line}{after}"


class Encoded(str):
    """A text that is already JSON."""


def json_pieces(material: Mapping[str, Any]) -> Iterator[str]:
    """Yield the JSON text of an object in pieces: one line for each field and each item of a list of objects.

    An iterator of `Encoded` items is written item by item, so a record of millions of folds is never one string in
    memory.
    """
    separator = "{\n"
    for key, value in material.items():
        yield f"{separator}  {json.dumps(key)}: "
        separator = ",\n"
        if isinstance(value, Iterator) or (isinstance(value, list) and value and isinstance(value[0], dict)):
            inner = "[\n"
            for item in value:
                yield f"{inner}    {item if isinstance(item, Encoded) else _line(item)}"
                inner = ",\n"
            yield "\n  ]" if inner == ",\n" else "[]"
        else:
            yield _line(value)
    yield "\n}\n"


def _line(value: Any) -> str:
    return json.dumps(value, allow_nan=False, ensure_ascii=False)


NESTED_WARNING = "nested: "  # start of warnings about outer folds of a nested cross-validation
NOT_AVERAGED = "the time limit ended before near-optimal pairs were averaged; the model of the reported pair is used"


Status = Literal["proved", "limit", "interrupted", "doubtful"]
PairStatus = Literal["decided", "excluded", "open"]
STATUSES: tuple[Status, ...] = ("proved", "limit", "interrupted", "doubtful")


def relative_gap(lower: float, upper: float) -> float:
    """Return `(upper - lower) / upper`: 0 if both are 0, +inf if `upper` is unknown.

    Examples
    --------
    >>> relative_gap(0.9, 1.0)
    0.09999999999999998
    """
    if not math.isfinite(upper):
        return math.inf
    return (upper - lower) / upper if upper > 0.0 else 0.0


@dataclass(frozen=True)
class OracleWork:
    """The work that an oracle saved a search. Counts are exact except `nodes`, which is an estimate.

    `asked` is the number of queries and `seconds` their time. Savings: `mios` subproblems solved without branching (or
    later relaxation), `relaxations` that were not needed, `columns` fixed before a search over supports began, and
    `rows` not read. `hits` (of `iacv`, in records of 0.2) is the number of subproblems whose final support it named
    first. `nodes` is the estimated size of the saved trees, at the mean of the trees that were grown.
    """

    oracle: str
    asked: Count = 0
    mios: Count = 0
    relaxations: Count = 0
    columns: Count = 0
    hits: Count = 0
    rows: Count = 0
    nodes: Count = 0
    seconds: Seconds = 0.0


@dataclass(frozen=True)
class SourceWork:
    """The cost and gain of one source of bounds, such as subproblem trees, full-data trees or enclosures.

    `slices` is the number of its work units. Two counts measure its work: `problems`, the ridge problems that it set up
    (on the rows of a fold, or on all rows, at one gamma), and `nodes` of trees. On one thread and without a limit,
    every run gives the same counts. `seconds` and `cpu_seconds` are wall-clock and processor time. `decided` is the
    number of solved subproblems, and `ruled_out` that of open subproblems of pairs that its lower bounds excluded.
    `gap_closed` is the decrease of the relative gap of the grid, which starts at 1. The decreases add up to more than 1
    if the gap belongs to different pairs before and after a step, as in a descent.
    """

    source: str
    slices: Count = 0
    problems: Count = 0
    nodes: Count = 0
    seconds: Seconds = 0.0
    cpu_seconds: Seconds = 0.0
    decided: Count = 0
    ruled_out: Count = 0
    gap_closed: float = 0.0


@dataclass(frozen=True)
class GapStep:
    """The relative gap of the grid at a time in `seconds`, and the source that worked since the previous step."""

    source: str
    seconds: Seconds
    gap: float


@dataclass(frozen=True)
class PlanSetting:
    """A number, switch or list of names that determined what a search ran.

    `setting` is its value, null for an infinite limit, in a `unit`. `reason` is the condition that enables it, or the
    reason for its value. `is_default` is true if neither the data nor the options changed it.
    """

    name: str
    setting: bool | int | float | str | tuple[int | str, ...] | None
    unit: str
    reason: str
    is_default: bool = True


@with_short_repr
@dataclass(frozen=True)
class Work:
    """The cost of a run: `mios` subproblems (tau, gamma, fold) solved by branching, `nodes` of all trees, `seconds`.

    `sources` has the cost and gain of each source of bounds, `course` the gap over time, and `plan` every setting that
    determined what the search ran, as listed in docs/how_it_decides.md. All three are empty in older records, and if no
    grid was searched.
    """

    mios: Count
    nodes: Count
    seconds: Seconds
    engine: str
    oracles: tuple[OracleWork, ...] = ()
    sources: tuple[SourceWork, ...] = ()
    course: tuple[GapStep, ...] = ()
    plan: tuple[PlanSetting, ...] = ()


@with_short_repr
@dataclass(frozen=True)
class ReadingInfo:
    """The preprocessing of a file that is not a plain table of numbers: options, and values learned from columns.

    `columns` are the features as named in the file; a text column became those `DataInfo.names` that begin with its
    name. `means` (medians with na median) replace missing cells of new rows, `levels` are the levels of a text column
    in the order of their codes. `order` has the columns coded by rank, with their declared levels. `categories` are the
    columns whose numbers are text values. `skip_lines` are the numbers of the skipped lines of the file. `filled` are
    the columns with imputed cells; null in older records. `left_out` is the number of rows dropped for missing cells.
    `marked` are the columns with an additional column that marks their missing cells. `absent` is the number of rows in
    the level `(missing)` of each text column; null in older records. `dates` are the numbers that dates became, and
    `date_forms` the format of each date column.
    """

    sep: str | None
    decimal: str
    comment: str | None
    encoding: str
    header: bool
    index_col: str | None
    na: str
    encode: str
    columns: tuple[str, ...]
    means: Coefficients
    levels: Mapping[str, tuple[str, ...]]
    left_out: Count
    thousands: str | None = None
    na_values: tuple[str, ...] = ()
    keep_default_na: bool = True
    na_indicator: bool = False
    marked: tuple[str, ...] = ()
    order: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    skip_lines: str | None = None
    filled: tuple[str, ...] | None = None
    dates: tuple[str, ...] = ()
    date_forms: Mapping[str, str] = field(default_factory=dict)
    absent: Mapping[str, Count] | None = None
    categories: tuple[str, ...] = ()

    @property
    def ranked_levels(self) -> dict[str, tuple[str, ...]]:
        """Levels of each column that is coded by rank, in the order of their codes 0, 1, ..."""
        by_rank = self.columns if self.encode == Encode.ORDINAL else self.order
        return {column: self.levels[column] for column in by_rank if column in self.levels}

    @property
    def code_labels(self) -> dict[str, str]:
        """Codes of the levels of each text column that is one feature of its name: `poor = 0, fair = 1, good = 2`."""
        encoded = {column: self.levels[column] for column in self.columns if column in self.levels}
        opposites = {column: words for column, words in encoded.items() if words in OPPOSITES}
        return {
            column: ", ".join(f"{word} = {code}" for code, word in enumerate(words))
            for column, words in (self.ranked_levels | opposites).items()
        }

    @property
    def code_lines(self) -> list[str]:
        """One line for each of these columns."""
        return [f"codes of {column}: {codes}" for column, codes in self.code_labels.items()]


def reading_info(applied: Applied | None) -> ReadingInfo | None:
    """Return the preprocessing of a file for the record; None for a plain table of numbers."""
    if applied is None or not applied.is_told:
        return None
    words: dict[str, Any] = {
        declared_field.name: getattr(applied.how, declared_field.name) for declared_field in fields(Reading)
    }
    return ReadingInfo(
        **words | {"na": str(applied.how.na), "encode": str(applied.how.encode), "order": applied.how.orders},
        columns=applied.columns,
        means=dict(applied.means), levels=dict(applied.levels), left_out=applied.left_out,
        marked=applied.marked, filled=applied.filled, date_forms=dict(applied.date_forms),
        absent=None if applied.absent is None else dict(applied.absent),
    )  # fmt: skip


def applied_reading(info: ReadingInfo | None) -> Applied | None:
    """Return the preprocessing of the file of a record.

    Raises
    ------
    CorruptStore
        If the record has an invalid reading option.
    """
    if info is None:
        return None
    try:
        how = Reading.from_keywords(
            **{declared_field.name: getattr(info, declared_field.name) for declared_field in fields(Reading)}
            | {"order": info.order or info.ranked_levels}  # before `order` existed, all ranks were alphabetical
        )
    except SparseCVError as error:
        raise CorruptStore(f"record: field data.reading is not valid ({error})") from None
    return Applied(
        how, info.columns, dict(info.means), dict(info.levels), info.left_out, marked=info.marked, filled=info.filled,
        date_forms=dict(info.date_forms), absent=info.absent,
    )  # fmt: skip


NAMED_BY_DATASET = (  # fields that a data set has too
    "weights", "class_weight", "exposure", "offset", "trials", "event", "entry", "strata", "ties", "n_events",
    "has_matched_sets",
)  # fmt: skip


@with_short_repr
@dataclass(frozen=True)
class DataInfo:
    """The data of a record: `names` are the features in order, so that a reader can select the same columns again.

    `weights` is the column of row weights; with `class_weight` `balanced` both classes also have the same total weight.
    `n` and `fingerprint` belong to the rows with positive weight, and `total_weight` is their weight. In older records
    with a column of weights, rows were repeated by their weights, and `total_weight` is null. `reading` is the
    preprocessing of the file; null for a plain table of numbers. `exposure` is the column of exposures of counts, and
    `offset` the column that is added to linear predictors. With `trials`, the column of the numbers of trials, the
    successes and failures of a row of the file are two rows, and `total_weight` is the number of trials. `loss` is the
    loss of the fits; null in records of version 0.2 or older. With survival times, `event`, `entry` and `strata` are
    columns, `total_weight` is the weight of the events, `n_events` their number, and `null_error` the error of the
    model without features. `has_matched_sets` states that each stratum has one time and at most one event.
    """

    n: Count
    p: Count
    target: str
    fingerprint: str
    scale: str
    intercept: str
    names: tuple[str, ...]
    weights: str | None = None
    total_weight: Number | None = None
    reading: ReadingInfo | None = None
    class_weight: Literal["balanced"] | None = None
    exposure: str | None = None
    loss: Loss | None = None
    offset: str | None = None
    trials: str | None = None
    event: str | None = None
    entry: str | None = None
    strata: str | None = None
    ties: Literal["efron", "breslow"] | None = None
    null_error: Number | None = None
    n_events: Count | None = None
    has_matched_sets: bool = False

    @property
    def unit_of_errors(self) -> str:
        """What the CV error is a mean over: rows, trials, or events."""
        if self.event is not None:
            return "event"
        return "row" if self.trials is None else "trial"

    @property
    def deviance(self) -> str:
        """Name of the deviance of the model on all rows."""
        return "deviance" if self.trials is None else "binomial deviance"


@dataclass(frozen=True)
class FoldInfo:
    """The folds of a record: rebuilt from `spec` and `seed`, compared by `digest`; `k` counts all `repeats`."""

    spec: str
    seed: Count | None
    k: Count
    digest: str
    repeats: Count = 1


@with_short_repr
@dataclass(frozen=True)
class GridRequest:
    """The request of a run: the grid, the relative gap, the limits, and restrictions if there are any."""

    gammas: tuple[Gamma, ...]
    taus: tuple[Count, ...]
    gap: Number
    one_se: bool = False
    time_limit: Seconds | None = None
    threads: Count | None = None
    restrictions: Restrictions | None = None
    reference: tuple[str, ...] | None = None  # levels against which tables and figures show coefficients of factors


@with_short_repr
@dataclass(frozen=True)
class SearchRequest(GridRequest):
    """The further options of a search, as requested; None in records that are older than an option.

    `method_used` is the method that `auto` selected. `oracles` is None if the choice was left to the search.
    `stability` has the requested weights of the instability, or None. `scale_within` and `na_within` are `folds` if
    scaling and imputation use the training rows of each fold, else None. `sources` has the disabled sources of bounds,
    each with a minus sign; None if all were enabled. Only records older than 0.2.0 have `engine` and `tau_step`.
    """

    method: str | None = None
    method_used: str | None = None
    backend: str | None = None
    formulation: str | None = None
    engine: str | None = None
    mio_budget: Count | None = None
    refine: bool | None = None
    tau_step: str | None = None
    oracles: tuple[str, ...] | None = None
    stability: tuple[Number, ...] | None = None
    model: str | None = None
    own_error: bool | None = None
    solver_option: tuple[str, ...] | None = None
    loss: str | None = None
    positive: str | None = None
    scale_within: Literal["folds"] | None = None
    na_within: Literal["folds"] | None = None
    sources: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Side:
    """The side constraints of one fit, null if absent; features in `together` enter together.

    `reference` are the reference levels of factors for coefficients in tables and figures. Only older records
    have `box`, the bounds on coefficients that `restrictions.coef_bounds` has now.
    """

    restrictions: Restrictions | None = None
    together: tuple[tuple[str, ...], ...] | None = None
    box: tuple[CoefficientBounds, ...] | None = None
    reference: tuple[str, ...] | None = None

    def words(self) -> str:
        """Return the side constraints as text; empty without constraints.

        Examples
        --------
        >>> Side(Restrictions(nonnegative="a", coef_bounds="c=0..1"), (("b", "c"),)).words()
        'a not below 0; c in [0, 1]; b, c all or none'
        """
        said = [self.restrictions.words()] if self.restrictions else []
        said += [f"{', '.join(group)} all or none" for group in self.together or ()]
        return "; ".join([*said, *map(str, self.box or ())])


OTHER_FILES = {  # files of JSON that are not records, by the name of their schema
    "sparsecv-bounds": "`sparsecv bounds`",
    "sparsecv-backends": "`sparsecv backends`",
    "sparsecv-progress": "`--progress-json`",
    "sparsecv-trace": "`--trace`",
    "sparsecv-task": "`sparsecv batch`",
}


@dataclass(frozen=True)
class Head:
    """The field that identifies the schema of a text."""

    schema: str


def read_schema(text: str) -> str:
    """Return the schema of a text."""
    return decode(text, Head).schema


def make_frame(rows: Sequence[DataclassInstance]) -> pd.DataFrame:
    """Return dataclass instances as a pandas frame with a column for every field."""
    with naming_extras():
        import pandas as pd

    return pd.DataFrame({f.name: [getattr(row, f.name) for row in rows] for f in fields(rows[0])})


class JsonRecord:
    """A record as JSON text and as a file; `schema_name` is the required value of its field `schema`."""

    schema_name: ClassVar[str]
    data: DataInfo

    @property
    def loss(self) -> Loss:
        """Loss of the fits."""
        return self.data.loss or self._loss_of_parts()

    @property
    def wording(self) -> Target:
        """The words for the model, its ratios and its errors; those of matched sets if the strata are such sets."""
        return self.loss.target.name_matched_sets() if self.data.has_matched_sets else self.loss.target

    @property
    def target_codes(self) -> str:
        """Numbers for the two values of a text target with squared-error loss, as text; empty for other targets."""
        reading = self.data.reading if self.loss.is_quadratic else None
        words = () if reading is None else reading.levels.get(self.data.target, ())
        return ", ".join(f"{word} = {code}" for code, word in enumerate(words))

    @property
    def null_error(self) -> float | None:
        """Loss per row of the null model of classes, counts or times; None for a target of numbers."""
        parts = (getattr(self, name, None) for name in FIELDS_OF_VALUES.values())
        return next((part.null_error for part in parts if part is not None), self.data.null_error)

    @property
    def null_name(self) -> str:
        """Name of `null_error`, such as `log loss of the class frequencies`."""
        target = self.wording
        null = target.null_model if self.data.offset is None else "the offset and an intercept"
        return f"{target.held_out_error} of {null}"

    def _loss_of_parts(self) -> Loss:
        """Return the loss of a record of version 0.2 or older, which states it by the parts it has."""
        stated = (values for values, name in FIELDS_OF_VALUES.items() if getattr(self, name, None) is not None)
        return find_loss_of_values(next(stated, DEFAULT_LOSS.target.values))

    def pieces(self) -> Iterator[str]:
        """Yield the text of `to_json` in pieces, so that a large record is never one string in memory."""
        hints = get_type_hints(type(self), include_extras=True)
        return json_pieces({f.name: plain(getattr(self, f.name), hints[f.name], f.name) for f in fields(self)})  # type: ignore[arg-type]

    def to_json(self) -> str:
        """Return the record as strict JSON text; unknown bounds (+inf) are null."""
        return "".join(self.pieces())

    def write_record(self, path: str | os.PathLike[str]) -> None:
        """Write the record completely or not at all; to a pipe or device it is written directly.

        Raises
        ------
        BadInput
            If the file cannot be written.
        """
        write_text(path, self.pieces(), "record", through=True)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the record of a JSON text.

        Raises
        ------
        CorruptStore
            If the schema is another one, or a field is missing or malformed; the message names it.
        """
        schema = read_schema(text)
        maker = OTHER_FILES.get(schema.partition("/")[0])
        if maker is not None:
            raise CorruptStore(
                f"record: the file was written by {maker} and is not a record, so it has no answer to verify"
                + NAME_RECORD
            )
        if schema != cls.schema_name:
            raise CorruptStore(
                f"record: field schema must be {cls.schema_name!r}, not {schema[:40]!r}; if another version of "
                "sparsecv-mio wrote the record, read it with that version, or run the command of the record again"
            )
        return cls.from_any_schema(text)

    @classmethod
    def from_any_schema(cls, text: str) -> Self:
        """Return the record of a JSON text for any value of `schema`; raise `CorruptStore` as `from_json` does."""
        record: Any = decode(text, cls)
        if record.status not in STATUSES:
            raise CorruptStore(f"record: field status must be one of {', '.join(STATUSES)}, not {record.status[:40]!r}")
        _check_data(record.data)
        _check_loss(record)
        request = getattr(record, "request", None)
        for grid, values in () if request is None else (("gammas", request.gammas), ("taus", request.taus)):
            if not values:
                raise CorruptStore(f"record: field request.{grid} is empty")
        limits = getattr(request or getattr(record, "side", None), "restrictions", None)
        known, adjusted = frozenset(record.data.names), frozenset(limits.adjust if limits else ())
        for path, inside in iterate_parts(record):
            _check_part(inside, known, path, adjusted)
        return record


# Fields of any part of a record with feature names, and with nonnegative numbers (sums of squares, mean absolute
# values).
NAMES = ("support", "supports", "coefficients", "always", "never", "feature", "other")
SQUARES = (
    "cv_error", "objective", "upper", "error", "value", "best", "threshold", "standard_error", "mae", "instability",
    "instability_upper", "at_low", "at_high", "curve_errors", "allowed", "missed", "fewer",
)  # fmt: skip


def _check_data(data: DataInfo) -> None:
    """Raise an error for a record whose data have no rows, or another number of distinct features than stated."""
    if not data.n:
        raise CorruptStore("record: field data.n is 0; a record needs at least one row")
    if len(data.names) != data.p:
        raise CorruptStore(f"record: field data.names has {len(data.names)} names, but data.p is {data.p}")
    twice = next((name for name, times in Counter(data.names).items() if times > 1), None)
    if twice is not None:
        raise CorruptStore(f"record: field data.names has {twice!r} twice")


def _check_loss(record: JsonRecord) -> None:
    """Raise an error for a record whose loss needs a part that it lacks, or excludes one that it has."""
    for values, name in FIELDS_OF_VALUES.items():
        needed = record.loss.target.values is values
        if (getattr(record, name, None) is not None) != needed:
            raise CorruptStore(f"record: field {name} must {'not be' if needed else 'be'} null with loss {record.loss}")
    needed = record.loss.target.has_times
    if (record.data.null_error is not None, record.data.event is not None) != (needed, needed):
        raise CorruptStore(f"record: fields data.event and data.null_error do not suit loss {record.loss}")


def iterate_parts(part: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the path and the fields of every part of a record; folds, stored by column, have `supports` and `error`."""
    if isinstance(part, tuple):
        for i, item in enumerate(part):
            yield from iterate_parts(item, f"{path}[{i}]")
    elif hasattr(part, "json_items"):
        yield path, {"supports": part.supports, "error": part.error.tolist()}
    elif is_dataclass(part):
        inside = {field.name: getattr(part, field.name) for field in fields(part)}
        yield path, inside
        for name, value in inside.items():
            yield from iterate_parts(value, f"{path}.{name}".lstrip("."))


def _check_part(inside: Mapping[str, Any], known: frozenset[str], path: str, adjusted: frozenset[str]) -> None:
    """Raise an error for features that the data lack, a model without its coefficients, and negative squares."""
    for name, value in inside.items():
        place = f"{path}.{name}".lstrip(".")
        for entry in _flat(value) if name in (*NAMES, *SQUARES) else ():
            if name in NAMES and isinstance(entry, str) and entry not in known:
                raise CorruptStore(f"record: field {place} names {entry!r}, which is not in data.names")
            if name in SQUARES and entry is not None and entry < 0.0:
                raise CorruptStore(f"record: field {place} has a negative number")
    if "curve_gammas" in inside and len(inside["curve_gammas"]) != len(inside["curve_errors"]):
        raise CorruptStore(f"record: field {path}.curve_errors must have one value for each of curve_gammas")
    if "low" in inside and "high" in inside and "pieces" in inside and not inside["low"] < inside["high"]:
        raise CorruptStore(f"record: field {path}.low is not below high")
    if "coefficients" in inside and set(inside["coefficients"]) != {*inside["support"], *adjusted}:
        place = f"{path}.coefficients".lstrip(".")
        raise CorruptStore(
            f"record: field {place} must have one value for each feature of support and each adjustment column"
        )


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple | list | dict):
        for item in value:
            yield from _flat(item)
    else:
        yield value


@cache
def package_version(package: str) -> str:
    """Return the version of an installed package, or `not installed`."""
    if loaded := getattr(sys.modules.get(package), "__version__", None):
        return str(loaded)  # faster than looking up the installed package
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def versions() -> dict[str, str]:
    """Return the versions of the package, Python and the numerical libraries for the record; cached."""
    numbers = {"sparsecv_mio": __version__, "python": platform.python_version()}
    return numbers | {name: package_version(name) for name in ("numpy", "scipy", "numba")}


@dataclass(frozen=True, slots=True)
class ChosenFold:
    """One fold of the reported pair: the support fitted without it and the held-out sum of squares of that fit.

    If `decided`, the support is optimal; otherwise it is the known support with the minimum training objective.
    `error` is infinite, and null in JSON, if the held-out loss exceeds the largest number or the fold has no model yet.
    """

    fold: Count
    support: tuple[str, ...]
    error: float
    decided: bool = True


@dataclass(frozen=True, slots=True)
class _StoredFold:
    """A fold as in JSON: `error` is None instead of infinite."""

    fold: Count
    support: tuple[str, ...]
    error: Number | None
    decided: bool = True


class ChosenFolds(Sequence[ChosenFold]):
    """Every fold of the reported pair: the few distinct supports, and the one that each fold uses.

    Parameters
    ----------
    supports : tuple of tuple of str
        Distinct supports.
    which : (k,) integers
        Indices of supports: fold j uses `supports[which[j]]`.
    error : (k,) floats
        Held-out sums of squares by fold; never NaN.
    decided : (k,) bools
        True for each fold whose support is optimal.
    """

    # not a dataclass: msgspec would use its fields as the JSON, instead of calling `from_json_items`
    def __init__(
        self, supports: tuple[tuple[str, ...], ...], which: IntArray, error: FloatArray, decided: BoolArray
    ) -> None:
        self.supports, self.which, self.error, self.decided = supports, which, error, decided

    @classmethod
    def of(
        cls,
        supports: Sequence[Sequence[str]],
        errors: Sequence[float] | FloatArray,
        decided: Sequence[bool] | None = None,
    ) -> ChosenFolds:
        """Return the folds from one support and one error for each fold.

        Parameters
        ----------
        supports : sequence of sequences of str
            Features of the model of each fold.
        errors : (k,) floats
            Held-out sums of squares.
        decided : (k,) bools, optional
            Mask of solved folds; all folds by default.

        Examples
        --------
        >>> folds = ChosenFolds.of([["a"], ["b"], ["a"]], [1.0, 2.0, 0.5])
        >>> folds.supports, folds[2].support
        ((('a',), ('b',)), ('a',))
        """
        index: dict[tuple[str, ...], int] = {}
        which = [index.setdefault(tuple(support), len(index)) for support in supports]
        sure = np.ones(len(which), dtype=np.bool_) if decided is None else np.asarray(decided, dtype=np.bool_)
        return cls(tuple(index), np.asarray(which, dtype=np.int64), np.asarray(errors, dtype=np.float64), sure)

    def __repr__(self) -> str:
        return f"ChosenFolds({len(self)} folds, {len(self.supports)} supports)"

    def __len__(self) -> int:
        return len(self.which)

    def __getitem__(self, fold: Any) -> Any:
        if isinstance(fold, slice):
            return [self[i] for i in range(*fold.indices(len(self)))]
        position = range(len(self))[fold]
        support = self.supports[self.which[position]]
        return ChosenFold(position, support, float(self.error[position]), bool(self.decided[position]))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ChosenFolds)
            and len(self) == len(other)
            and all(a == b for a, b in zip(self, other, strict=True))
        )

    __hash__ = None  # type: ignore[assignment]

    def json_items(self) -> Iterator[Encoded]:
        """Yield one line of JSON for each fold."""
        if np.isnan(self.error).any():
            raise ValueError("record: field chosen_folds has an error that is not a number")
        encoded = [json.dumps(list(support), ensure_ascii=False) for support in self.supports]
        words = ("false", "true")
        columns = zip(self.which.tolist(), self.error.tolist(), self.decided.tolist(), strict=True)
        for fold, (which, error, decided) in enumerate(columns):
            shown = "null" if error == math.inf else repr(error)
            line = f'{{"fold": {fold}, "support": {encoded[which]}, "error": {shown}, "decided": {words[decided]}}}'
            yield Encoded(line)

    @classmethod
    def from_json_items(cls, items: list[Any]) -> ChosenFolds:
        """Return the folds from the output of `json_items`, in the order 0, 1, ..."""
        folds = convert_json(items, list[_StoredFold])
        for i, fold in enumerate(folds):
            if fold.fold != i:
                raise ValueError(f"must be {i}, not {fold.fold}{AT}[{i}].fold`")
        errors = [math.inf if fold.error is None else fold.error for fold in folds]
        return cls.of([fold.support for fold in folds], errors, [fold.decided for fold in folds])


@dataclass(frozen=True)
class InstabilityRow:
    """The certified interval of the instability of one pair of the table; 0 to unknown if the pair cannot be chosen."""

    lower: Number
    upper: Bound


@dataclass(frozen=True)
class OuterModel:
    """The model that a weight chose without an outer fold, and its mean squared `error` on this fold."""

    fold: Count
    gamma: Gamma
    tau: Count
    support: tuple[str, ...]
    error: Number


@dataclass(frozen=True)
class TriedWeight:
    """A weight tried by nested cross-validation, and its mean squared `error` over the rows of the outer folds.

    With logistic loss `error` is the mean log loss.
    """

    weight: Number
    error: Number
    folds: tuple[OuterModel, ...]


@dataclass(frozen=True)
class WeighedModel:
    """The full-data model at the pair that a weight chooses; `proved` as in `StableChoice`."""

    weight: Number
    gamma: Gamma
    tau: Count
    support: tuple[str, ...]
    proved: bool


@with_short_repr
@dataclass(frozen=True)
class StableChoice:
    """The certified statements about the pair with the minimum of `h + weight * instability`.

    `lower` is a lower bound on the criterion over the whole grid, `upper` an upper bound for the pair. `proved` means
    `upper - lower <= gap * upper + allowance`. `allowance` is the width of the interval of the pair with the smallest
    lower bound if all its optimal models are known (ties and rounding), else 0. `intervals` bound the instability by
    row of the table. `models` has the model of every weight, if several were given. If nested cross-validation chose
    the weight, `outer` describes the outer folds and `tried` the weights with their errors; they are null and empty for
    a given weight.
    """

    weight: Number
    lower: Number
    upper: Bound
    allowance: Number
    proved: bool
    intervals: tuple[InstabilityRow, ...]
    models: tuple[WeighedModel, ...] = ()
    outer: FoldInfo | None = None
    tried: tuple[TriedWeight, ...] = ()


@with_short_repr
@dataclass(frozen=True)
class Stability:
    """The change of the model if a fold is held out of its training set.

    The `instability` of the reported pair is the largest change that holding out one fold makes to the squared errors
    of all rows, per row,

        max over folds j of  (1/n) sum_i |(y_i - x_i' b^(-N_j))^2 - (y_i - x_i' b)^2|,

    at the supports of the record; `fold` is the maximising fold. `instability_lower` and `instability_upper` bound it
    over all optima, including ties and unsolved folds. With logistic loss, log losses replace the squares. If
    `estimate` is true, the optimal model of some fold or of all rows is not known. If `instability` would then lie
    outside its interval, it is moved to the nearer bound. `chosen` has the certified statements about the choice if a
    weight was requested, else null.
    """

    instability: Number
    instability_lower: Number
    instability_upper: Bound
    fold: Count
    estimate: bool
    chosen: StableChoice | None = None
