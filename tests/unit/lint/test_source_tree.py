"""The lint finds long functions, circles of imports and what else is wrong with the tree."""

from __future__ import annotations

from pathlib import Path

from lint import source_tree
from lint.finding import Fault


def test_long_files_and_functions_are_found() -> None:
    function = "def f():\n" + "    pass\n" * source_tree.MAX_FUNCTION
    assert [*source_tree.lengths(f"x = 1\n{function}")] == [Fault(2, "61 lines in f()")]
    assert [*source_tree.lengths("x = 1\n" * 501)] == [Fault(1, "501 lines in a file")]
    assert [*source_tree.lengths(function.replace("    pass\n", "", 1))] == []


def test_a_missing_module_is_found() -> None:
    code = "from locktop.collector.model import Kind\nfrom locktop.collector.gone import x\n"
    assert [fault.line for fault in source_tree.unresolved_imports(code)] == [2]


def test_a_circle_of_imports_is_found() -> None:
    sources = {
        Path("collector/model/a.py"): "from locktop.collector.analysis import b\n",
        Path("collector/analysis/b.py"): "def f():\n    from locktop.collector.model import a\n",
    }
    (finding,) = source_tree.circles(sources)
    assert finding.message == "a circle of imports: analysis, model"
    sources[Path("collector/analysis/b.py")] = "from locktop.collector.analysis import c\n"
    assert [*source_tree.circles(sources)] == []


def test_records_are_found() -> None:
    sources = {
        Path("collector/model/a.py"): "class Record(Struct): pass\nclass Other: pass\n",
        Path("tui/b.py"): "Record(1)\nRecord(a=1, b=2)\nOther(1, 2)\nRecord(1, 2)\n",
        Path("tui/c.py"): "class Other: pass\n",
    }
    assert [f"{found}" for found in source_tree.records_by_position(sources)] == [
        "tui/b.py:4: Record is made by position"
    ]
    assert [f"{found}" for found in source_tree.repeated_classes(sources)] == [
        "tui/c.py:1: class Other is in collector/model/a.py too"
    ]
    assert [fault.line for fault in source_tree.dataclasses("x\n@dataclass\nclass A: ...")] == [2]


def test_a_test_of_no_module_is_found(tmp_path: Path) -> None:
    for name in (
        "collector/shm/ring.py",
        "tests/unit/shm/test_ring.py",
        "tests/unit/shm/test_ring_wraps.py",
        "tests/unit/shm/test_bell.py",
        "tests/unit/support/test_bell.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert [str(found.path) for found in source_tree.tests_without_module(tmp_path)] == [
        "tests/unit/shm/test_bell.py"
    ]
