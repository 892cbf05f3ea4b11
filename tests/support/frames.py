"""Frames of files with the numbers as written: pandas 2 reads them some ulp off unless it is asked for them."""

from functools import partial

import pandas as pd

read_csv = partial(pd.read_csv, float_precision="round_trip")
