"""Parts of records on draws: they are read back as they were written."""

from __future__ import annotations

import json

from sparsecv_mio.certificate.inference_parts import ChosenModel, FailedDraw
from sparsecv_mio.certificate.parts import decode, plain

MODEL = ChosenModel(3, 0.1, 2, ("a", "b"), {"a": 1.0, "b": -2.0}, 0.5, "proved", 1e-5, 3.0)


def test_choices_are_read_back_as_written() -> None:
    for choice in (MODEL, FailedDraw(4, "one class")):
        kind = type(choice)
        assert decode(json.dumps(plain(choice, kind, "draw")), kind) == choice
