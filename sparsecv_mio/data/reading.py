"""How a file is read: its separators and marks, what is done with empty cells and words, and what that made of them."""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypedDict, Unpack

from sparsecv_mio.data.marks import NONE, SAME, WORDS, Way
from sparsecv_mio.errors import BadInput, did_you_mean
from sparsecv_mio.words import Encode, Missing, word_of

SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "space": " ", "pipe": "|"}
MARKS = ",;\t |:"
OPPOSITES = (("false", "true"), ("no", "yes"), ("f", "t"), ("n", "y"))
OF_CELLS = ("decimal", "na", "encode", "thousands")  # of the options those that frames have too
MAY_LACK = ("sep", "comment", "thousands")
ABSENT = "(missing)"  # the word that stands for empty cells in a column of words


class ReadingWords(TypedDict, total=False):
    """The options of :class:`Reading`, as keywords."""

    sep: str | None
    decimal: str
    comment: str | None
    encoding: str
    header: bool
    index_col: str | int | None
    na: str
    encode: str
    thousands: str | None


class TableWords(ReadingWords, total=False):
    """How a table is read: the options of a reading, and which columns are features."""

    features: Sequence[str] | None
    drop: Sequence[str] | None


@dataclass(frozen=True)
class Reading:
    """How a file is read; the defaults refuse whatever is not a clean table of numbers.

    Attributes
    ----------
    sep : str, optional
        The character between cells, or `comma`, `semicolon`, `tab`, `pipe`, or `space` for any run of blanks; by
        default a comma in `.csv` and a tab in `.tsv` and `.txt` files.
    decimal : str
        The decimal mark.
    comment : str, optional
        Lines that begin with it are left out.
    encoding : str
        Of the text.
    header : bool
        Whether the first line names the columns; else they are `x0`, `x1`, ...
    index_col : str, optional
        Name or position of a column that only numbers the rows.
    na : Missing
        What is done with empty cells and marks such as NA.
    encode : Encode
        What is done with words.
    thousands : str, optional
        What sets off thousands, in groups of three digits: a comma, a point, `space` or `apostrophe`, in all of their
        forms; `none` where nothing does, whatever it looks like. By default nothing does, and numbers that could be
        read in two ways are refused.
    """

    sep: str | None = None
    decimal: str = "."
    comment: str | None = None
    encoding: str = "utf-8"
    header: bool = True
    index_col: str | None = None
    na: Missing = Missing.ERROR
    encode: Encode = Encode.ERROR
    thousands: str | None = None

    @classmethod
    def of(cls, **words: Unpack[ReadingWords]) -> Reading:
        r"""Check the options.

        Parameters
        ----------
        **words
            The fields of the class, by name.

        Raises
        ------
        BadInput
            The message names the option.
        TypeError
            For a keyword that is none.

        Examples
        --------
        >>> how = Reading.of(sep="semicolon", decimal=",", na="mean")
        >>> how.sep, how.decimal, str(how.na)
        (';', ',', 'mean')
        """
        given: dict[str, Any] = {one.name: one.default for one in fields(cls)}
        given.update(words)
        _check_kinds(given)
        sep, decimal, comment, encoding = given["sep"], given["decimal"], given["comment"], given["encoding"]
        between = None if sep is None else SEPARATORS.get(sep.strip().lower(), sep.replace("\\t", "\t"))
        if between is not None and (len(between) != 1 or between.isalnum() or between in '"\r\n'):
            listed = ", ".join(SEPARATORS)
            raise BadInput(f"sep: {sep!r} is no separator: give one character, or one of {listed}")
        if decimal not in (".", ",") or decimal == between:
            taken = f'separates the cells already: give decimal="{"," if decimal == "." else "."}"'
            raise BadInput(f"decimal: {decimal!r} {taken if decimal == between else 'is no decimal mark: use . or ,'}")
        if comment is not None and (len(comment) != 1 or comment.isalnum() or comment in MARKS):
            raise BadInput(f"comment: {comment!r} cannot begin a comment: give one mark, such as #")
        try:
            codecs.lookup(encoding)
        except (LookupError, ValueError):
            raise BadInput(f"encoding: {encoding!r} is unknown: use latin-1, cp1252 or utf-16, say") from None
        index = None if given["index_col"] is None else str(given["index_col"])
        missing, words_as = word_of(Missing, given["na"], "na"), word_of(Encode, given["encode"], "encode")
        groups = _thousands(given["thousands"], decimal)
        return cls(between, decimal, comment, encoding, given["header"], index, missing, words_as, groups)

    @property
    def cures(self) -> bool:
        """Whether cells are allowed that are no plain numbers."""
        groups = self.thousands not in (None, NONE)
        return self.na is not Missing.ERROR or self.encode is not Encode.ERROR or groups

    @property
    def way(self) -> Way:
        """How numbers are written."""
        return Way(self.decimal, self.thousands)

    @property
    def rewrites(self) -> bool:
        """Whether the text has to be rewritten before it is a plain table."""
        return self.comment is not None or self.sep == " " or codecs.lookup(self.encoding).name != "utf-8"

    def given(self) -> list[str]:
        """Return the names of the options that are not at their defaults."""
        return [f.name for f in fields(self) if getattr(self, f.name) != f.default]


def _check_kinds(given: Mapping[str, Any]) -> None:
    """Refuse unknown names of options, and values of another kind than they take."""
    for unknown in set(given) - set(ReadingWords.__annotations__):
        meant = did_you_mean(unknown, ReadingWords.__annotations__)
        raise TypeError(f"unexpected keyword argument {unknown!r}{meant}")
    for name in ("sep", "decimal", "comment", "encoding", "na", "encode", "thousands"):
        if not isinstance(given[name], str) and (given[name] is not None or name not in MAY_LACK):
            raise BadInput(f"{name}: {given[name]!r} is no text")
    if not isinstance(given["index_col"], str | int | None):
        raise BadInput(f"index_col: {given['index_col']!r} is neither the name nor the position of a column")
    if not isinstance(given["header"], bool):
        raise BadInput(f"header: {given['header']!r} is neither True nor False")


def _thousands(given: str | None, decimal: str) -> str | None:
    """Return the mark that sets off thousands, by its word or any of its forms."""
    if given is None:
        return None
    marks = {"comma": ",", "point": ".", "dot": ".", NONE: NONE} | {word: mark for mark, word in WORDS.items()}
    forms = {form: mark for mark, several in SAME.items() for form in several}
    mark = marks.get(given.strip().lower(), forms.get(given, given))
    if mark not in (",", ".", NONE, *WORDS):
        raise BadInput(f"thousands: {given!r} sets off no thousands: use comma, point, space, apostrophe or none")
    if mark == decimal:
        other = "," if decimal == "." else "."
        raise BadInput(
            f'thousands: {given!r} is the decimal mark already: give decimal="{other}" too, or thousands="none"'
        )
    return mark


STRICT = Reading()


@dataclass(frozen=True)
class Applied:
    """How the numbers of a data set were made of a file, so that new rows can be read alike.

    Attributes
    ----------
    how : Reading
        What was asked for.
    columns : tuple of str
        The features as the file names them; a column of words may have become several.
    means : mapping of str to float
        By column, the mean of all rows that fills its empty cells.
    levels : mapping of str to tuple of str
        By column, its words; the target's too where it holds two.
    left_out : int
        Number of rows that were left out.
    notes : tuple of str
        The same in sentences, with what a user should know of it.
    """

    how: Reading
    columns: tuple[str, ...]
    means: Mapping[str, float] = field(default_factory=dict)
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    left_out: int = 0
    notes: tuple[str, ...] = ()

    def names_of(self, column: str) -> tuple[str, ...]:
        """Return the features that a column of the file became."""
        return feature_names(column, self.levels[column], self.how.encode) if column in self.levels else (column,)


def feature_names(column: str, levels: Sequence[str], encode: Encode) -> tuple[str, ...]:
    """Return the names of the features that a column of words becomes.

    Two opposites, such as no and yes, and with `ordinal` all words, make one feature of the column's name; other two
    words one that has the name of the second; more words one each.

    Parameters
    ----------
    column : str
    levels : sequence of str
        Its words.
    encode : Encode

    Examples
    --------
    >>> feature_names("sex", ("f", "m"), Encode.ONEHOT), feature_names("ill", ("no", "yes"), Encode.ONEHOT)
    (('sex=m',), ('ill',))
    >>> feature_names("size", ("L", "M", "S"), Encode.ONEHOT)
    ('size=L', 'size=M', 'size=S')
    """
    if encode is Encode.ORDINAL or tuple(levels) in OPPOSITES:
        return (column,)
    return tuple(f"{column}={level}" for level in (levels[1:] if len(levels) == 2 else levels))
