"""Make locktop.pyz, one file for hosts that have python3 alone.

    single_file.py WHEEL OUTPUT [PIP_ARGUMENT...]

The file is for the Python minor version and the machine that run this script: some dependencies
have compiled modules. pip gets the further arguments, such as ``--no-index``.

shiv makes it, not pex, because shiv always unpacks real files into a directory that stays. The
loader opens liblocktop.so by its path, also in programs that start long after locktop has ended.
pex unpacks into a temporary directory if the home cannot be written, and removes that directory.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

_START = Path(__file__).with_name("single_file_start.py")
_MAIN = f"from {_START.stem} import start\n\nstart(python={{}}, machine={{!r}})\n"


def main(wheel: str, output: str, *pip: str) -> None:
    unchecked = Path(output).with_suffix(".unchecked")
    subprocess.run(
        [
            *(sys.executable, "-m", "shiv.cli", "--entry-point", "locktop.tui.cli:main"),
            # What has not changed gives the same file, and unpacks into the same directory.
            *("--reproducible", "--compressed", "--output-file", str(unchecked)),
            *("--quiet", "--disable-pip-version-check", *pip, wheel),
        ],
        check=True,
    )
    _with_own_start(unchecked, Path(output))
    unchecked.unlink()


def _with_own_start(made: Path, output: Path) -> None:
    """Copy a file that shiv made, with our start in place of shiv's."""
    text = _MAIN.format(sys.version_info[:2], platform.machine())
    with made.open("rb") as file:
        first_line = file.readline()
    with output.open("wb") as file:
        file.write(first_line)
        with zipfile.ZipFile(made) as source, zipfile.ZipFile(file, "w") as target:
            for entry in source.infolist():
                content = source.read(entry)
                target.writestr(entry, text if entry.filename == "__main__.py" else content)
            target.writestr(_entry_like(source.getinfo("__main__.py")), _START.read_bytes())
    shutil.copymode(made, output)


def _entry_like(main_entry: zipfile.ZipInfo) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(_START.name, main_entry.date_time)
    entry.compress_type = main_entry.compress_type
    return entry


if __name__ == "__main__":
    main(*sys.argv[1:])
