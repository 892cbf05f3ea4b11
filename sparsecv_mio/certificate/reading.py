"""Read the record of any command back from its file."""

from __future__ import annotations

import os

from sparsecv_mio.certificate.codec import decode
from sparsecv_mio.certificate.parts import Head
from sparsecv_mio.certificate.record import FitRecord, PathRecord, Record
from sparsecv_mio.errors import CorruptStore
from sparsecv_mio.files import check_readable

AnyRecord = Record | PathRecord | FitRecord

MOST_BYTES = 1 << 30  # some ten million folds


def read_record(path: str | os.PathLike[str]) -> AnyRecord:
    """Return the record stored at `path`, of any of the three schemas.

    Raises
    ------
    CorruptStore
        The file cannot be read, is no regular file, is larger than 1 GiB, or is not a record.
    """
    check_readable(path, "record", CorruptStore, MOST_BYTES)
    try:
        with open(path, encoding="utf-8") as stream:
            text = stream.read()
    except OSError as error:
        raise CorruptStore(f"cannot read record {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise CorruptStore(f"record {path}: not a text file") from None
    schema = decode(text, Head).schema
    kind = next((kind for kind in (PathRecord, FitRecord) if kind.schema_name == schema), Record)
    return kind.from_json(text)
