"""A store of verified results, so that `collect` verifies each result of a batch only once on a machine.

A result is known by a digest of its file, its data, its folds and the sources of the package. The digests are in the
cache folder of the user, not in the folder of the batch: results that came from another machine are verified here.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path

from sparsecv_mio.batch.one_task import TaskOutcome
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan

MAX_DIGESTS = 100_000  # stored digests, 6.5 MB; a longer file loses the older half


def cache_file() -> Path:
    """Return the file of the digests in the cache folder of the user."""
    folder = os.environ.get("XDG_CACHE_HOME")
    return (Path(folder) if folder else Path.home() / ".cache") / "sparsecv-mio" / "verified.txt"


@cache
def _digest_of_sources() -> bytes:
    """Return the digest of all modules, because a changed check verifies again."""
    digest = hashlib.sha256()
    for place in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(place.read_bytes())
    return digest.digest()


def digest_of_result(outcome: TaskOutcome, data: Dataset, folds: FoldPlan) -> str:
    """Return the digest of a result, its data and its folds.

    Parameters
    ----------
    outcome : TaskOutcome
        Outcome of a task.
    data : Dataset
        Training rows, read again.
    folds : FoldPlan
        Folds of these rows, made again.
    """
    digest = hashlib.sha256(_digest_of_sources())
    parts = [asdict(outcome), data.fingerprint, folds.digest]
    digest.update(json.dumps(parts, sort_keys=True, default=str).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


class VerifiedResults:
    """The results that were verified on this machine before.

    Examples
    --------
    >>> "0" * 64 in VerifiedResults()
    False
    """

    def __init__(self) -> None:
        self._path, self._known = cache_file(), dict[str, None]()
        with suppress(OSError, ValueError):
            self._known = dict.fromkeys(self._path.read_text(encoding="ascii").split())

    def __contains__(self, digest: str) -> bool:
        return digest in self._known

    def add(self, digest: str) -> None:
        """Store a digest; without a writable cache folder it is known to this object only."""
        self._known[digest] = None
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            if len(self._known) > MAX_DIGESTS:
                self._known = dict.fromkeys(list(self._known)[len(self._known) // 2 :])
                self._path.write_text("".join(f"{stored}\n" for stored in self._known), encoding="ascii")
            else:
                with self._path.open("a", encoding="ascii") as stream:
                    stream.write(f"{digest}\n")
