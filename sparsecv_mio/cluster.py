"""A dask cluster: the connection to its scheduler, and whether its workers run this version."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sparsecv_mio.errors import BackendUnavailable
from sparsecv_mio.version import __version__

if TYPE_CHECKING:
    from distributed import Client

ANSWERS = 10.0  # seconds within which a scheduler answers
APPEARS = 60.0  # seconds within which the first worker is there


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """Connect to the scheduler of a cluster, for as long as the context lasts.

    Parameters
    ----------
    address : str
        As `tcp://host:8786`.

    Yields
    ------
    distributed.Client

    Raises
    ------
    BackendUnavailable
        dask is not installed, no scheduler answers, it has no worker, or a worker has another version of this package.
    """
    try:
        from distributed import Client
    except ImportError:
        raise BackendUnavailable("--scheduler needs dask: pip install distributed") from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what is wrong is said in one line here
    try:
        client = Client(address, timeout=ANSWERS, set_as_default=False)
    except (OSError, ValueError) as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BackendUnavailable(f"--scheduler: no dask scheduler answers at {address!r} ({why})") from None
    with client:
        try:
            client.wait_for_workers(1, timeout=APPEARS)
        except TimeoutError:
            raise BackendUnavailable(
                f"--scheduler: {address} has no worker: start some by `dask worker {address} --nthreads 1`"
            ) from None
        _check_versions(client)
        yield client


def _check_versions(client: Client) -> None:
    try:
        versions = client.run(_version)
    except ImportError as error:
        raise BackendUnavailable(f"--scheduler: install this package where the workers are ({error})") from None
    for worker, version in versions.items():
        if version != __version__:
            raise BackendUnavailable(f"--scheduler: worker {worker} has version {version}, not {__version__}")


def _version() -> str:
    return __version__


def slots(client: Client) -> int:
    """Return how many tasks the cluster runs at once, at least 1."""
    return max(1, sum(client.ncores().values()))
