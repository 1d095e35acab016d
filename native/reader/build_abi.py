"""Make locktop/_abi.py from the C headers: build_abi.py OUTPUT HEADER...

cffi understands declarations, not the preprocessor, so lines that begin with "#" are left out, with
the lines that continue them. The module is plain Python that loads a plain shared library. So
building locktop needs no Python headers, and one wheel serves every Python.
"""

from __future__ import annotations

import sys
from pathlib import Path

from cffi import FFI

LIBRARY = """

# ------------------------------------------------------------------------------------------------
from pathlib import Path as _Path

lib = ffi.dlopen(str(_Path(__file__).with_name("lib") / "liblocktop-reader.so"))
"""


def declarations(header: Path) -> str:
    """Return the text of a header without the lines that cffi cannot read."""
    lines = header.read_text(encoding="utf-8").replace("\\\n", "").splitlines()
    return "\n".join("" if line.lstrip().startswith("#") else line for line in lines)


def main(output: Path, headers: list[Path]) -> None:
    ffi = FFI()
    ffi.set_source("locktop._abi", None)
    ffi.cdef("\n".join(declarations(header) for header in headers))
    ffi.emit_python_code(str(output))
    text = output.read_text(encoding="utf-8")
    output.write_text(text + LIBRARY, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
