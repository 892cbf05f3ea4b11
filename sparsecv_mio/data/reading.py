"""How a file is read: its separators and marks, what is done with empty cells and words, and what that made of them."""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TypedDict

from sparsecv_mio.errors import BadInput
from sparsecv_mio.words import Encode, Missing, word_of

SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "space": " ", "pipe": "|"}
MARKS = ",;\t |:"
OPPOSITES = (("false", "true"), ("no", "yes"), ("f", "t"), ("n", "y"))
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
    """

    sep: str | None = None
    decimal: str = "."
    comment: str | None = None
    encoding: str = "utf-8"
    header: bool = True
    index_col: str | None = None
    na: Missing = Missing.ERROR
    encode: Encode = Encode.ERROR

    @classmethod
    def of(
        cls, *, sep: str | None = None, decimal: str = ".", comment: str | None = None, encoding: str = "utf-8",
        header: bool = True, index_col: str | int | None = None, na: str = "error", encode: str = "error",
    ) -> Reading:  # fmt: skip
        r"""Check the options.

        Parameters
        ----------
        sep, decimal, comment, encoding, header, index_col, na, encode
            See the class.

        Raises
        ------
        BadInput
            The message names the option.

        Examples
        --------
        >>> how = Reading.of(sep="semicolon", decimal=",", na="mean")
        >>> how.sep, how.decimal, str(how.na)
        (';', ',', 'mean')
        """
        texts = {"sep": sep, "decimal": decimal, "comment": comment, "encoding": encoding, "na": na, "encode": encode}
        for name, text in texts.items():
            if not isinstance(text, str) and (text is not None or name not in ("sep", "comment")):
                raise BadInput(f"--{name}: {text!r} is no text")
        if not isinstance(index_col, str | int | None):
            raise BadInput(f"--index-col: {index_col!r} is neither the name nor the position of a column")
        if not isinstance(header, bool):
            raise BadInput(f"header: {header!r} is neither true nor false")
        between = None if sep is None else SEPARATORS.get(sep.strip().lower(), sep.replace("\\t", "\t"))
        if between is not None and (len(between) != 1 or between.isalnum() or between in '"\r\n'):
            words = ", ".join(SEPARATORS)
            raise BadInput(f"--sep: {sep!r} is no separator: give one character, or one of {words}")
        if decimal not in (".", ",") or decimal == between:
            what = "separates the cells already" if decimal == between else "is no decimal mark: use . or ,"
            raise BadInput(f"--decimal: {decimal!r} {what}")
        if comment is not None and (len(comment) != 1 or comment.isalnum() or comment in MARKS):
            raise BadInput(f"--comment: {comment!r} cannot begin a comment: give one mark, such as #")
        try:
            codecs.lookup(encoding)
        except (LookupError, ValueError):
            raise BadInput(f"--encoding: {encoding!r} is unknown: use latin-1, cp1252 or utf-16, say") from None
        index = None if index_col is None else str(index_col)
        missing, words_as = word_of(Missing, na, "--na"), word_of(Encode, encode, "--encode")
        return cls(between, decimal, comment, encoding, header, index, missing, words_as)

    @property
    def cures(self) -> bool:
        """Whether cells that are no numbers are allowed."""
        return self.na is not Missing.ERROR or self.encode is not Encode.ERROR

    @property
    def rewrites(self) -> bool:
        """Whether the text has to be rewritten before it is a plain table."""
        return self.comment is not None or self.sep == " " or codecs.lookup(self.encoding).name != "utf-8"

    def given(self) -> list[str]:
        """Return the options that are not at their defaults, as the command line writes them."""
        changed = (f.name for f in fields(self) if getattr(self, f.name) != f.default)
        return ["--no-header" if name == "header" else f"--{name.replace('_', '-')}" for name in changed]


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
