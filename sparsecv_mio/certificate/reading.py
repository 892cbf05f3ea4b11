"""Read the record of any command back from its file."""

from __future__ import annotations

import os

from sparsecv_mio.certificate.near_records import CommonRecord, NearRecord
from sparsecv_mio.certificate.parts import schema_of
from sparsecv_mio.certificate.record import FitRecord, PathRecord, Record
from sparsecv_mio.errors import BadInput, CorruptStore
from sparsecv_mio.files import check_readable

AnyRecord = Record | PathRecord | FitRecord
StoredRecord = AnyRecord | NearRecord | CommonRecord

MOST_BYTES = 1 << 30  # some ten million folds


def read_record(path: str | os.PathLike[str]) -> StoredRecord:
    """Return the record stored at `path`, of any schema.

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
    schema = schema_of(text)
    others = (PathRecord, FitRecord, NearRecord, CommonRecord)
    kind = next((kind for kind in others if kind.schema_name == schema), Record)
    return kind.from_json(text)


def read_drawn(path: str | os.PathLike[str]) -> AnyRecord:
    """Return the record stored at `path`, of a kind that figures and reports are made of.

    Raises
    ------
    CorruptStore
        As `read_record`, or the record holds no row of a table.
    BadInput
        A record of another kind.
    """
    stored = read_record(path)
    if isinstance(stored, NearRecord | CommonRecord):
        raise BadInput(f"record {path} has no figures: name a record of `solve` (criterion folds), `path` or `fit`")
    if (isinstance(stored, Record) and not stored.table) or (isinstance(stored, PathRecord) and not stored.path):
        raise CorruptStore(f"record {path}: its table is empty")
    return stored
