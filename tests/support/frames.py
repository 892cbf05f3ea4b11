"""Frames of files with the numbers as written: pandas 2 reads them some ulp off unless it is asked for them."""

from functools import partial

import pandas as pd

EXACT = {"float_precision": "round_trip"} if pd.__version__.startswith("2.") else {}  # pandas 3 always reads so

read_csv = partial(pd.read_csv, **EXACT)
