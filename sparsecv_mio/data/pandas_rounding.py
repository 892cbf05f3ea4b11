"""Parsing of decimal numbers with the rounding errors of `read_csv` of pandas 2, which rounds after every digit.

Data that were read by pandas 2 may differ from the file in the last digits, so a record of them does not have the
fingerprint of the file. With the same rounding errors, the file is recognised as the source of these data.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sparsecv_mio.arrays import BLOCK_NUMBERS, FloatArray
from sparsecv_mio.data.dataset import Dataset

READ_DIGITS = 17  # digits that pandas reads, including leading zeros
EXACT_BELOW = 1e15  # integers below this value are read exactly


def as_pandas_2(numbers: FloatArray) -> FloatArray:
    """Return numbers as pandas 2 parses them from a file that holds the shortest text of each number.

    Parameters
    ----------
    numbers : array
        Finite numbers.

    Examples
    --------
    >>> as_pandas_2(np.array([0.5, 3.0, -0.16251892949777494])).tolist()
    [0.5, 3.0, -0.1625189294977749]
    """
    read = numbers.copy()
    inexact = (np.abs(numbers) >= EXACT_BELOW) | (numbers != np.rint(numbers))
    read[inexact] = [_digit_by_digit(repr(value)) for value in numbers[inexact].tolist()]
    return read


def _digit_by_digit(text: str) -> float:
    mantissa, _, power = text.removeprefix("-").partition("e")
    whole, _, decimals = mantissa.partition(".")
    number, exponent = 0.0, int(power or 0) + max(len(whole) - READ_DIGITS, 0)
    read = decimals[: max(READ_DIGITS - len(whole), 0)]
    for digit in whole[:READ_DIGITS] + read:
        number = number * 10.0 + int(digit)
    exponent -= len(read)
    if abs(exponent) > 308:
        return float(text)
    number = number * float(f"1e{exponent}") if exponent > 0 else number / float(f"1e{-exponent}")
    return -number if text.startswith("-") else number


def read_by_pandas_2(data: Dataset, fingerprint: str) -> tuple[Dataset, str] | None:
    """Return the data with the rounding of pandas 2 and a description of the difference, or None.

    Parameters
    ----------
    data : Dataset
        Data set.
    fingerprint : str
        Fingerprint of the data to be reproduced; None is returned if it does not match.
    """
    if data.X.size > BLOCK_NUMBERS:
        return None
    read = replace(data, X=as_pandas_2(data.X), y=as_pandas_2(data.y))
    if read.fingerprint != fingerprint:
        return None
    exact, by_pandas = np.append(data.X.ravel(), data.y), np.append(read.X.ravel(), read.y)
    differ = exact != by_pandas
    most = float(np.max(np.abs(by_pandas[differ] / exact[differ] - 1.0), initial=0.0))
    return read, f"{int(differ.sum()):,} of {len(exact):,} numbers differ in their last digits, by {most:.1g} at most"
