"""Debian's source packages, unpacked into a cache directory."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from whatif_programs.base import need

_ETC = Path("/etc/apt")


def source(package: str, cache: Path) -> Path:
    """Return the directory of a source package, with Debian's patches. Raises SystemExit."""
    directory = cache / "source" / package
    if not (found := _unpacked(directory)):
        for command, owner in (("dpkg-source", "dpkg-dev"), ("patch", "patch")):
            need(command, owner)
        directory.mkdir(parents=True, exist_ok=True)
        options = _options(cache)
        subprocess.run(["apt-get", *options, "update"], check=False, capture_output=True)
        command = ["apt-get", *options, "source", package]
        done = subprocess.run(command, cwd=directory, check=False, capture_output=True, text=True)
        found = _unpacked(directory)
        if done.returncode or not found:
            sys.exit(f"apt-get source {package} fails: {done.stderr.strip()}")
    return found[0]


def _unpacked(directory: Path) -> list[Path]:
    return [one for one in directory.glob("*") if one.is_dir()]


def _options(cache: Path) -> list[str]:
    """Return options with which apt knows the sources of the packages that it knows."""
    parts, lists = cache / "apt" / "sources", cache / "apt" / "lists"
    parts.mkdir(parents=True, exist_ok=True)
    (lists / "partial").mkdir(parents=True, exist_ok=True)
    for file in [_ETC / "sources.list", *(_ETC / "sources.list.d").glob("*")]:
        if file.suffix in (".list", ".sources") and file.exists():
            text = re.sub(r"^deb\b", "deb-src", file.read_text(), flags=re.MULTILINE)
            text = re.sub(r"^Types:.*", "Types: deb-src", text, flags=re.MULTILINE)
            (parts / file.name).write_text(text)
    settings = {
        "Dir::Etc::sourcelist": os.devnull,
        "Dir::Etc::sourceparts": str(parts),
        "Dir::State::lists": str(lists),
    }
    if not os.getuid():
        settings["APT::Sandbox::User"] = "root"  # another user may not write into the cache
    return [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
