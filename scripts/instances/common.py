"""What the derivation and the downloader share: where files go and how they are checked."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pandas as pd

FOLDER = Path(__file__).resolve().parents[2] / "instances"


def checksums() -> dict[str, str]:
    """Return the SHA-256 of every instance, from `instances/SHA256SUMS`."""
    lines = (FOLDER / "SHA256SUMS").read_text().split("\n")
    return {name: digest for digest, name in (line.split() for line in lines if line)}


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file as hex digits."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def save(frame: pd.DataFrame, path: Path, float_format: str | None = None) -> bool:
    """Write a frame as CSV and compare it with the recorded checksum; print what differs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.to_csv(path, index=False, lineterminator="\n", float_format=float_format)
    if sha256(path) == checksums()[path.name]:
        print(f"{path.name}: identical ({frame.shape[0]} rows, {frame.shape[1] - 1} features)")
        return True
    kept = FOLDER / path.name
    if kept.exists() and kept.resolve() != path.resolve():
        old = pd.read_csv(kept)
        if list(old.columns) == list(frame.columns) and len(old) == len(frame):
            gap = np.max(np.abs(old.to_numpy(float) - pd.read_csv(path).to_numpy(float)))
            print(f"{path.name}: DIFFERS from the kept file, by at most {gap:.3g} in any number")
            return False
    print(f"{path.name}: DIFFERS from the recorded checksum")
    return False
