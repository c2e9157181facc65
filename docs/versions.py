"""Put a site that was built into a folder of versions: ``python docs/versions.py site published dev``.

With ``--releases`` behind it, the sites of all releases (tags ``vX.Y.Z``) are built and put there, too; of a minor version the last.

The folder has one folder a version, ``versions.json``, which the theme's switch reads (in the format of the tool mike), and an
``index.html`` that leads to the newest release, or to ``dev`` where there is none.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def add(site: Path, folder: Path, version: str) -> None:
    """Copy the site into its folder, replacing an earlier build of the same version, and list it."""
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / version).exists():
        shutil.rmtree(folder / version)
    shutil.copytree(site, folder / version)
    (folder / "versions.json").write_text(json.dumps(listed(folder), indent=2) + "\n")
    newest = listed(folder)[0]["version"]
    page = f'<!doctype html><meta charset="utf-8"><title>MACE</title><meta http-equiv="refresh" content="0; url={newest}/index.html">'
    (folder / "index.html").write_text(f'{page}<a href="{newest}/index.html">MACE {newest}</a>\n')


def listed(folder: Path) -> list[dict[str, object]]:
    """Return the versions in a folder, the newest release first and ``dev`` last."""
    names = sorted(
        (each.name for each in folder.iterdir() if each.is_dir() and (each / "index.html").exists()), key=_order
    )
    return [{"version": name, "title": name, "aliases": []} for name in reversed(names)]


def add_releases(folder: Path) -> None:
    """Build the site of every release from its own sources; releases from before there was a site have none."""
    tags = subprocess.run(["git", "tag", "--list", "v*"], capture_output=True, text=True, check=True).stdout.split()
    for tag in sorted(tags, key=_order):
        version = re.fullmatch(r"v(\d+\.\d+)\.\d+", tag)
        if version is None:
            continue
        with tempfile.TemporaryDirectory() as place:
            sources, site = Path(place, "sources"), Path(place, "site")
            subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(sources), tag], check=True)
            try:
                if (sources / "mkdocs.yml").exists():
                    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(site)]
                    subprocess.run(command, cwd=sources, check=True)
                    add(site, folder, version[1])
            finally:
                subprocess.run(["git", "worktree", "remove", "--force", str(sources)], check=True)


def _order(name: str) -> tuple[int, ...]:
    numbers = re.findall(r"\d+", name)
    return tuple(map(int, numbers)) if numbers else (-1,)


if __name__ == "__main__":
    add(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
    if "--releases" in sys.argv:
        add_releases(Path(sys.argv[2]))
