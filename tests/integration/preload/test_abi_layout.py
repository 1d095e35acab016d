"""cffi computes the same layout from the C headers as the compiler does."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from locktop.collector.native import ffi

ROOT = Path(__file__).resolve().parents[3]


def cffi_layout() -> dict[str, int]:
    """Return the size of each structure, and the offset of each of its fields."""
    _, structs, _ = ffi.list_types()
    layout = {}
    for name in structs:
        kind = ffi.typeof(f"struct {name}")
        layout[name] = ffi.sizeof(kind)
        layout |= {f"{name}.{field}": about.offset for field, about in kind.fields}
    return layout


def test_cffi_and_the_compiler_agree_on_each_field(tmp_path: Path) -> None:
    ours = cffi_layout()
    assert "lt_header.magic" in ours
    lines = []
    for name in ours:
        struct, _, field = name.partition(".")
        of = f"offsetof(struct {struct}, {field})" if field else f"sizeof(struct {struct})"
        lines.append(f'    printf("{name} %zu\\n", {of});')
    source = tmp_path / "layout.c"
    source.write_text(
        "#include <stddef.h>\n#include <stdio.h>\n"
        '#include "locktop/abi.h"\n#include "reader.h"\n#include "counter.h"\n#include "sample.h"\n'
        '#include "simulator.h"\n#include "cells.h"\n'
        "int main(void)\n{\n" + "\n".join(lines) + "\n}\n"
    )
    program = tmp_path / "layout"
    include = [f"-I{ROOT}/native/include", f"-I{ROOT}/native/reader"]
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, *include, str(source), "-o", str(program)], check=True)
    said = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
    theirs = {name: int(number) for name, number in map(str.split, said.splitlines())}
    assert ours == theirs
