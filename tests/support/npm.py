"""Packages of the npm registry that read files of locktop: fetched once, without what they need."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

import pytest

from support import requirements
from support.targets import ROOT


@cache
def package(name: str, version: str) -> Path:
    """Return the directory of a package; skips the test without npm or a network."""
    directory = ROOT / "build" / "npm" / f"{name}-{version}"
    if not (directory / "package").exists():
        npm = requirements.command("npm", optional=True)
        directory.mkdir(parents=True, exist_ok=True)
        command = [str(npm), "pack", "--silent", f"{name}@{version}"]
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"{name} cannot be fetched: {done.stderr.strip()[-200:]}")
        archive = directory / done.stdout.strip().splitlines()[-1]
        subprocess.run(["tar", "xzf", archive], cwd=directory, check=True)
    return directory / "package"
