"""Whether the places that name a release agree: version.py, CHANGELOG.md, CITATION.cff, the recipe, the addresses.

The recipe asks for what `sparsecv-mio[full]` does, too.

    python scripts/release/agree.py [--tag v0.3.0] [--repository OWNER/NAME]

Prints a line for each that does not; the exit code is their number. Only Python is needed.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RECIPE = "packaging/conda-forge/recipe.yaml"
CONDA = {"msgspec": "msgspec-python", "matplotlib": "matplotlib-base"}  # names that conda-forge has otherwise


def found(path: str, pattern: str) -> str:
    """Return the first group of the first place in a file that matches, or nothing."""
    place = re.search(pattern, (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
    return place[1] if place else ""


def expand_extra(extra: str, extras: dict[str, list[str]]) -> Iterator[str]:
    """Yield the requirements of an extra, and those of the extras of this package that it names."""
    for line in extras[extra]:
        own = re.fullmatch(r"sparsecv-mio\[(.*)\]", line)
        if own:
            for name in own[1].split(","):
                yield from expand_extra(name, extras)
        else:
            yield line


def required() -> set[str]:
    """Return what `sparsecv-mio[full]` asks for, as a recipe writes it, but numba, which is that of the build."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = [*project["dependencies"], *expand_extra("full", project["optional-dependencies"])]
    parts = [re.fullmatch(r"([\w-]+)([<>=].*)", line) for line in lines]
    return {f"{CONDA.get(part[1], part[1])} {part[2]}" for part in parts if part and part[1] != "numba"}


def disagreements(tag: str | None, repository: str | None) -> Iterator[str]:
    """Yield a line for each place that says something else."""
    version = found("sparsecv_mio/version.py", r'^__version__ = "(.*)"$')
    released = found("CHANGELOG.md", rf"^## {re.escape(version)} \((\d{{4}}-\d\d-\d\d)\)$")
    cited = found("CITATION.cff", r"^version: (.*)$"), found("CITATION.cff", r'^date-released: "(.*)"$')
    if not released:
        yield f"CHANGELOG.md has no heading '## {version} (YYYY-MM-DD)'"
    if cited != (version, released):
        yield f"CITATION.cff is of {' of '.join(cited)}, not of {version} of {released or '?'}"
    if found("README.md", r"^  version = \{(.*?)\}") != version:
        yield f"the BibTeX entry of README.md is not of {version}"
    if found("sparsecv_mio/report/references.bib", r"^  year = \{(.*?)\}") != released[:4]:
        yield f"the first entry of references.bib is not of {released[:4] or '?'}"
    if found(RECIPE, r"^  version: (.*)$") != version:
        yield f"{RECIPE} is not of {version}"
    recipe = (ROOT / RECIPE).read_text(encoding="utf-8").partition("\n  run:\n")[2].partition("\ntests:")[0]
    listed = {line for line in re.findall(r"^    - ([\w-]+ .*)$", recipe, re.MULTILINE) if "{" not in line}
    if listed != required():
        yield f"{RECIPE} and pyproject.toml do not both ask for {', '.join(sorted(listed ^ required()))}"
    if tag is not None and tag != f"v{version}":
        yield f"the tag is {tag}, the version {version}"
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
    addresses = {
        "pyproject.toml": urls["Source"],
        "CITATION.cff": found("CITATION.cff", r"^repository-code: (.*)$"),
        RECIPE: found(RECIPE, r"^  repository: (.*)$"),
    }
    ours = urls["Source"] if repository is None else f"https://github.com/{repository}"
    yield from (f"{path} names {url}, not {ours}" for path, url in addresses.items() if url != ours)


def main() -> int:
    """Print what does not agree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tag")
    parser.add_argument("--repository", metavar="OWNER/NAME")
    asked = parser.parse_args()
    lines = list(disagreements(asked.tag, asked.repository))
    print("\n".join(lines) or "version, changelog, citation, recipe and addresses agree")
    return len(lines)


if __name__ == "__main__":
    sys.exit(main())
