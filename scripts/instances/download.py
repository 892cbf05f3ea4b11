"""Fetch the instances that are not committed (wine, bardet, riboflavin) from UCI and CRAN, and check their SHA-256.

    python scripts/instances/download.py [wine] [bardet] [riboflavin] [--out DIR] [--from DIR]

`--from DIR` reads source files that were fetched by other means (the names are printed when one is missing).
"""

from __future__ import annotations

import argparse
import io
import tarfile
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pandas as pd
from common import FOLDER, save
from rdata import RObject, read_rdata

UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/wine-quality"
CRAN = "https://cran.r-project.org/src/contrib"


def fetch(name: str, addresses: list[str], store: Path | None) -> bytes:
    """Return a source file from the store, else from the first address that answers."""
    if store is not None and (store / name).exists():
        return (store / name).read_bytes()
    problem: Exception | None = None
    for address in addresses:
        try:
            with urllib.request.urlopen(address, timeout=60) as answer:
                return answer.read()
        except (urllib.error.URLError, OSError) as error:
            problem = error
    tried = " or ".join(addresses)
    raise SystemExit(
        f"{name} cannot be fetched from {tried} ({problem}); get it by other means and name its folder with --from"
    )


def cran_data(package: str, version: str, inner: str, store: Path | None) -> dict[str, RObject]:
    """Return the R objects of a data file inside a CRAN source archive (or of that file alone in the store)."""
    file = Path(inner).name
    if store is not None and (store / file).exists():
        return read_rdata(store / file)
    archive = f"{package}_{version}.tar.gz"
    raw = fetch(archive, [f"{CRAN}/{archive}", f"{CRAN}/Archive/{package}/{archive}"], store)
    with tarfile.open(fileobj=io.BytesIO(raw)) as tar, tempfile.TemporaryDirectory() as scratch:
        member = tar.extractfile(f"{package}/{inner}")
        if member is None:
            raise SystemExit(f"{archive} holds no {inner}")
        path = Path(scratch) / file
        path.write_bytes(member.read())
        return read_rdata(path)


def matrix_frame(table: RObject) -> pd.DataFrame:
    """Return an R matrix, or a data frame of plain columns, with its column names."""
    if "dim" in table.attributes:
        return pd.DataFrame(table.matrix(), columns=table.attributes["dimnames"].value[1].value)
    return pd.DataFrame({name: table.column(name).value for name in table.names()})


def wine(store: Path | None) -> tuple[pd.DataFrame, str | None]:
    """Red, then white; eleven measurements and the quality."""
    parts = []
    for colour in ("red", "white"):
        name = f"winequality-{colour}.csv"
        parts.append(pd.read_csv(io.BytesIO(fetch(name, [f"{UCI}/{name}"], store)), sep=";"))
    return pd.concat(parts, ignore_index=True), None


def bardet(store: Path | None) -> tuple[pd.DataFrame, str | None]:
    """`eyedata` of flare: 200 probes and the TRIM32 expression."""
    objects = cran_data("flare", "1.8", "data/eyedata.rda", store)
    return matrix_frame(objects["x"]).assign(y=objects["y"].value.reshape(-1)), None


def riboflavin(store: Path | None) -> tuple[pd.DataFrame, str | None]:
    """`riboflavin` of hdi: 4088 genes and the log production rate."""
    table = cran_data("hdi", "0.1-10", "data/riboflavin.RData", store)["riboflavin"]
    frame = matrix_frame(table.column("x"))
    response = pd.Series(table.column("y").value.reshape(-1), name="y")
    return pd.concat([frame, response], axis=1), "%.15g"


SOURCES: dict[str, Callable[[Path | None], tuple[pd.DataFrame, str | None]]] = {
    "wine": wine,
    "bardet": bardet,
    "riboflavin": riboflavin,
}


def main() -> int:
    """Fetch the instances; exit 1 where one differs from its checksum."""
    parser = argparse.ArgumentParser(description="fetch the instances that are not committed")
    parser.add_argument("names", nargs="*", default=list(SOURCES), help="instances to fetch (all by default)")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder for the CSV files (default: instances/)")
    parser.add_argument("--from", dest="store", type=Path, help="folder of source files fetched by other means")
    options = parser.parse_args()
    results = []
    for name in options.names:
        frame, float_format = SOURCES[name](options.store)
        results.append(save(frame, options.out / f"{name}.csv", float_format))
    return 0 if all(results) else 1


if __name__ == "__main__":
    raise SystemExit(main())
