"""Whether conda-forge's tool renders the recipe to one package for each Python, none of them `noarch`.

    python -m pip install py-rattler-build
    python scripts/release/render_recipe.py

Nothing is built, as that takes the channels of conda-forge, and `skip` is not looked at. Requirements are compared with
`pyproject.toml` by `agree.py`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from rattler_build import PlatformConfig, RenderConfig, Stage0Recipe, VariantConfig

RECIPE = Path(__file__).resolve().parents[2] / "packaging" / "conda-forge" / "recipe.yaml"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PLATFORMS = ("linux-64", "linux-aarch64", "osx-64", "osx-arm64", "win-64")


def main() -> int:
    """Print what is rendered."""
    recipe = Stage0Recipe.from_file(RECIPE)
    variants = VariantConfig({"python": [f"{python}.* *_cp{python.replace('.', '')}" for python in PYTHONS]})
    wrong = 0
    for platform in PLATFORMS:
        config = RenderConfig(
            platform=PlatformConfig(target_platform=platform, build_platform=platform, host_platform=platform)
        )
        builds = [variant.recipe.build for variant in recipe.render(variants, config)]
        names = {build.string for build in builds}
        print(f"{platform}: {', '.join(sorted(names))}")
        wrong += len(names) != len(PYTHONS) or any(build.noarch is not None for build in builds)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
