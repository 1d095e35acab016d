"""Caller/callee summary reports of Visual Studio's profiler: read, estimated, written."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise

import pytest
from support.seeds import seeds
from unit.builders import scenarios
from unit.builders.call_trees import flat

from locktop.collector.errors import LocktopError
from locktop.collector.render.documents import vsperf_csv
from locktop.collector.render.profiles import call_tree_estimate
from locktop.collector.render.profiles.call_tree import SourceLine, Step
from locktop.collector.render.profiles.call_tree_estimate import FunctionGroup, FunctionRow
from locktop.collector.render.profiles.profile import ReportProfile, SnapshotProfile, weight_of
from locktop.collector.render.profiles.vsperf_report import CallerCalleeReport, parse
from locktop.collector.sanitize import LONGEST

#: Type, function, inclusive, exclusive, root. main calls a and b, b calls a too, a calls c.
ROWS = (
    ("Root", "main", 100, 10, "main"),
    ("Callee", "a", 60, 15, "main"),
    ("Callee", "b", 30, 10, "main"),
    ("Root", "a", 80, 20, "a"),
    ("Caller", "main", 60, 15, "a"),
    ("Caller", "b", 20, 5, "a"),
    ("Callee", "c", 60, 60, "a"),
    ("Root", "b", 30, 10, "b"),
    ("Caller", "main", 30, 10, "b"),
    ("Callee", "a", 20, 5, "b"),
    ("Root", "c", 60, 60, "c"),
    ("Caller", "a", 60, 60, "c"),
)
#: The estimate: main caused 60 of the 80 of a. So 60 * 60/80 of the value of c belongs to main.
ESTIMATED = [
    ("/main", 100.0, 10.0),
    ("/main/a", 60.0, 15.0),
    ("/main/a/c", 45.0, 45.0),
    ("/main/b", 30.0, 10.0),
    ("/main/b/a", 20.0, 5.0),
    ("/main/b/a/c", 15.0, 15.0),
]

SAMPLING = (
    "Type,Function Name,Inclusive Samples,Exclusive Samples,Inclusive Samples %,"
    "Exclusive Samples %,Source File,Function Line Number,Module Name,Module Path,"
    "Function Address,Root Function Name,Process Name,Process ID,"
)
TRACING = (
    "Type,Function Name,Elapsed Inclusive Time,Elapsed Exclusive Time,Application Inclusive Time,"
    "Application Exclusive Time,Elapsed Inclusive Time %,Elapsed Exclusive Time %,"
    "Application Inclusive Time %,Application Exclusive Time %,Time Inclusive Probe Overhead,"
    "Time Exclusive Probe Overhead,Min Elapsed Inclusive Time,Avg Elapsed Inclusive Time,"
    "Max Elapsed Inclusive Time,Min Elapsed Exclusive Time,Avg Elapsed Exclusive Time,"
    "Max Elapsed Exclusive Time,Min Application Inclusive Time,Avg Application Inclusive Time,"
    "Max Application Inclusive Time,Min Application Exclusive Time,Avg Application Exclusive Time,"
    "Max Application Exclusive Time,Number of Calls,Source File,Function Line Number,Module Name,"
    "Module Path,Function Address,Root Function Name,Process Name,Process ID,"
)


def sampling_rows() -> Iterator[str]:
    for kind, name, inclusive, exclusive, root in ROWS:
        yield (
            f'"{kind}","{name}",{inclusive},{exclusive},{inclusive:.2f},{exclusive:.2f},'
            f'"c:\\src\\{name}.cpp",7,"p.exe","C:\\p.exe",0x0040{ord(name[0]):04X},'
            f'"{root}","p.exe",5068,'
        )


def tracing_rows() -> Iterator[str]:
    for kind, name, inclusive, exclusive, root in ROWS:
        yield (
            f'"{kind}","{name}",{inclusive},{exclusive},{inclusive / 2},{exclusive / 2},'
            f"{inclusive:.2f},{exclusive:.2f},0.00,0.00,63,63,{'1,' * 12}3,"
            f'"",0,"p.exe","C:\\p.exe",0x0040{ord(name[0]):04X},"{root}","p.exe",5068,'
        )


def text(header: str, rows: Iterator[str]) -> str:
    return "\r\n".join([header, *rows]) + "\r\n"


def tree_of(report: CallerCalleeReport, weight: str) -> list[tuple[str, float, float]]:
    return flat(ReportProfile(report, "x.csv").tree(weight))


# ---- both ways of profiling, in every file format ----


def test_a_sampling_report_is_read() -> None:
    report = parse(text(SAMPLING, sampling_rows()).encode(), "x.csv")
    assert [measure.name for measure in report.measures] == ["samples"]
    assert tree_of(report, "samples") == ESTIMATED
    assert (report.processes, report.notes) == (("p.exe 5068",), ())
    row = report.groups["samples"][Step("a", "p.exe")].row
    assert row.location == SourceLine("c:\\src\\a.cpp", 7)


def test_a_tracing_report_has_elapsed_and_application_time() -> None:
    report = parse(text(TRACING, tracing_rows()).encode(), "x.csv")
    assert [measure.name for measure in report.measures] == ["elapsed", "application"]
    assert tree_of(report, "elapsed") == ESTIMATED
    halved = [(path, value / 2, own / 2) for path, value, own in ESTIMATED]
    assert tree_of(report, "application") == halved


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_reports_of_any_encoding_are_read(encoding: str) -> None:
    report = parse(text(SAMPLING, sampling_rows()).encode(encoding), "x.csv")
    assert tree_of(report, "samples") == ESTIMATED


def test_a_report_in_an_old_code_page_is_read() -> None:
    data = text(SAMPLING, sampling_rows()).replace('"main"', '"für"').encode("cp1252")
    assert tree_of(parse(data, "x.csv"), "samples")[0][0] == "/für"


@pytest.mark.parametrize("separator", [";", "\t"])
def test_reports_with_other_separators_are_read(separator: str) -> None:
    data = text(SAMPLING, sampling_rows()).replace(",", separator).encode()
    assert tree_of(parse(data, "x.csv"), "samples") == ESTIMATED


def test_a_report_with_numbered_types_and_other_columns_is_read() -> None:
    number = {"Root": 0, "Caller": 1, "Callee": 2}
    rows = [
        f"{root},{exclusive},{inclusive},{name},{number[kind]}"
        for kind, name, inclusive, exclusive, root in ROWS
    ]
    header = "ROOT FUNCTION NAME,Exclusive  Samples,inclusive samples,Function Name,type"
    report = parse("\n".join(["", header, *rows]).encode(), "x.csv")
    assert tree_of(report, "samples") == ESTIMATED


def test_percentages_count_if_a_report_has_nothing_else() -> None:
    rows = [f"{kind},{name},{a},{b},{root}" for kind, name, a, b, root in ROWS]
    header = "Type,Function Name,Inclusive Samples %,Exclusive Samples %,Root Function Name"
    report = parse("\n".join([header, *rows]).encode(), "x.csv")
    assert [measure.says for measure in report.measures] == ["% of the samples"]
    assert tree_of(report, "samples") == ESTIMATED


HEAD = "Type{0}Function Name{0}Elapsed Inclusive Time{0}Elapsed Exclusive Time"


@pytest.mark.parametrize(
    ("separator", "cells", "value"),
    [
        (";", ("1.234,50", "0,25"), 1234.5),  # German
        (";", ("1234,5", "1,125"), 1234.5),
        (";", ("1\u00a0234,5", "0,1"), 1234.5),  # French
        (";", ("1'234.5", "0.1"), 1234.5),  # Swiss
        (";", ("1.234", "12"), 1234.0),  # no decimals: only the ; shows the decimal comma
        (";", ("1,234", "12"), 1.234),
        (";", ("1.234.567", "0,5"), 1234567.0),
        (",", ('"1,234.50"', "0.25"), 1234.5),
        (",", ('"51,506"', "0"), 51506.0),
        (",", ('"51,506"', '"0,5"'), 51.506),  # the other cell decides
        (",", ('"1,234,567"', "0.50"), 1234567.0),
        ("\t", ("1234.5", "0"), 1234.5),
        ("\t", ("1,5E+3", "0"), 1500.0),
        ("\t", (",5", "0,25"), 0.5),
        (";", ("1.234.567", "1.000.000"), 1234567.0),  # two points: neither is a decimal point
        (",", ('"12,34,567"', "0.5"), 1234567.0),  # Indian
    ],
)
def test_decimal_commas_and_points_are_read(
    separator: str, cells: tuple[str, str], value: float
) -> None:
    lines = [HEAD.format(separator), separator.join(["Root", "main", *cells])]
    report = parse("\n".join(lines).encode(), "x.csv")
    assert report.notes == ()
    assert report.groups["elapsed"][Step("main")].row.value == pytest.approx(value)


@pytest.mark.parametrize("cell", ["", ".", "1,5", "1,23", ",", "-5", "1e999", "٣", "0x10", "e5"])
def test_a_malformed_number_is_named(cell: str) -> None:
    lines = [HEAD.format(";"), "Root;main;1.5;0.25", f"Root;other;{cell};1"]
    report = parse("\n".join(lines).encode(), "x.csv")
    assert report.notes == (f"line 3 is left out: {cell!r} is not a number of elapsed time",)
    assert [step.name for step in report.groups["elapsed"]] == ["main"]


def test_percentages_tell_the_decimal_mark() -> None:
    """Only a percentage shows whether the only mark before three digits is decimal."""
    lines = [
        HEAD.format(",") + ",Elapsed Inclusive Time %",
        'Root,main,"7,848",0,"100,00"',
        'Root,main2,"1,234",0,"5,00"',
    ]
    report = parse("\n".join(lines).encode(), "x.csv")
    assert report.groups["elapsed"][Step("main")].row.value == pytest.approx(7.848)


# ---- malformed files ----


def test_malformed_rows_are_named_and_the_rest_is_used() -> None:
    good = list(sampling_rows())
    rows = [
        good[0],
        "Callee,short",
        good[1].replace('"Callee"', '"Friend"'),
        *good[1:4],
        good[3].replace(",80,", ",many,"),
        good[3].replace('"a"', '""', 1),
        *good[4:],
        good[1].replace('"main"', '"gone"'),
        '"Root","unclosed,1,2',
    ]
    report = parse(text(SAMPLING, iter(rows)).encode(), "x.csv")
    assert tree_of(report, "samples") == ESTIMATED
    numbers = sorted(int(note.split()[1]) for note in report.notes)
    assert numbers == [3, 4, 8, 9, 18, 19]
    assert any("'Friend' is none of Root, Caller, Callee" in note for note in report.notes)
    assert any("'many' is not a number" in note for note in report.notes)
    assert any("without a Root row of gone" in note for note in report.notes)


def test_notes_on_rows_are_bounded() -> None:
    rows = [*sampling_rows(), *["Callee,short"] * 500]
    notes = parse(text(SAMPLING, iter(rows)).encode(), "x.csv").notes
    assert len(notes) == 21
    assert notes[-1] == "and 480 lines more are left out"


def test_names_are_sanitized_and_shortened() -> None:
    data = text(SAMPLING, sampling_rows()).replace('"c"', '"\x1b[31m' + "T<" * 5000 + '"')
    names = [step.name for step in parse(data.encode(), "x.csv").groups["samples"]]
    assert max(map(len, names)) <= LONGEST
    assert not any("\x1b" in name for name in names)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no line has the titles"),
        (b"hello\nworld\n", "no line has the titles"),
        (b"Type,Function Name,Something\nRoot,main,1\n", "no inclusive and exclusive columns"),
        (SAMPLING.encode(), "there is no row of a function itself"),
        (f"{SAMPLING}\nRoot,main".encode(), "line 2 is left out"),
        (b"\x00" * 100, "no line has the titles"),
        (bytes(range(256)) * 10, "no line has the titles"),
    ],
)
def test_a_foreign_file_is_a_one_line_error(data: bytes, words: str) -> None:
    with pytest.raises(LocktopError, match=r"^x\.csv ") as raised:
        parse(data, "x.csv")
    assert words in str(raised.value)


def test_damaged_reports_are_read_or_refused() -> None:
    """Changed, added or missing bytes give a profile or an error line, and nothing else."""
    for seed in seeds(40):
        chance = random.Random(seed)
        whole = text(TRACING, tracing_rows()) if seed % 2 else text(SAMPLING, sampling_rows())
        data = bytearray(whole.encode(chance.choice(["utf-8", "utf-16"])))
        for _ in range(chance.randint(1, 40)):
            at = chance.randrange(len(data))
            piece = chance.choice(
                [b'"', b",", b"\n", b"\x85", b"-", b"1e999", b"9" * 400, b"\0", b""]
            )
            data[at : at + chance.randint(0, 3)] = piece
        try:
            report = parse(bytes(data), "x.csv")
        except LocktopError:
            continue
        for measure in report.measures:
            profile = ReportProfile(report, "x.csv")
            profile.tree(measure.name)
            profile.butterflies(measure.name)


def test_a_name_with_a_foreign_line_separator_is_one_name() -> None:
    data = text(SAMPLING, sampling_rows()).replace('"b"', '"b\u2028\x0cc"')
    report = parse(data.encode(), "x.csv")
    assert report.notes == ()
    assert ("/main/b  c", 30.0, 10.0) in tree_of(report, "samples")


def test_module_and_address_distinguish_functions_of_one_name() -> None:
    rows = [
        'Root,f,1,1,0,0,"",0,a.dll,"",0x10,f,p,1,',
        'Root,f,2,2,0,0,"",0,a.dll,"",0x20,f,p,1,',
        'Root,f,4,4,0,0,"",0,b.dll,"",0x10,f,p,1,',
    ]
    groups = parse(text(SAMPLING, iter(rows)).encode(), "x.csv").groups["samples"]
    assert {(step.module, step.number): group.row.value for step, group in groups.items()} == {
        ("a.dll", 0x10): 1.0,
        ("a.dll", 0x20): 2.0,
        ("b.dll", 0): 4.0,
    }


def test_the_process_distinguishes_functions() -> None:
    rows = [f'Root,f,{n},0,0,0,"",0,a.dll,"",0x10,f,p,{n},' for n in (1, 2)]
    report = parse(text(SAMPLING, iter(rows)).encode(), "x.csv")
    assert [step.module for step in report.groups["samples"]] == ["a.dll of p 1", "a.dll of p 2"]


# ---- the estimate ----


def row(name: str, value: float, own: float = 0.0) -> FunctionRow:
    return FunctionRow(Step(name), value, own)


def test_recursion_is_one_branch() -> None:
    groups = {
        Step("main"): FunctionGroup(row("main", 10), (), (row("walk", 10, 2),)),
        Step("walk"): FunctionGroup(
            row("walk", 10, 2), (row("main", 10), row("step", 6)), (row("step", 8, 1),)
        ),
        Step("step"): FunctionGroup(row("step", 8, 1), (row("walk", 8),), (row("walk", 6, 1),)),
    }
    root, notes = call_tree_estimate.tree(groups)
    assert flat(root) == [
        ("/main", 10.0, 0.0),
        ("/main/walk", 10.0, 2.0),
        ("/main/walk/step", 8.0, 1.0),
        ("/main/walk/step/walk", 6.0, 1.0),
    ]
    assert root.children[0].children[0].children[0].children[0].again
    assert notes == ()


def test_an_entry_is_called_by_itself_alone_or_is_the_largest_function() -> None:
    itself = {Step("f"): FunctionGroup(row("f", 5, 5), (row("f", 2),), (row("f", 2),))}
    root, notes = call_tree_estimate.tree(itself)
    assert (flat(root), notes) == ([("/f", 5.0, 5.0), ("/f/f", 2.0, 0.0)], ())
    cycle = {
        Step("a"): FunctionGroup(row("a", 5), (row("b", 5),), (row("b", 4),)),
        Step("b"): FunctionGroup(row("b", 9), (row("a", 4),), (row("a", 5),)),
    }
    root, notes = call_tree_estimate.tree(cycle)
    assert [node.step.name for node in root.children] == ["b"]
    assert notes == ("every function has a caller: the largest is taken for the entry",)


def test_a_callee_without_rows_of_its_callers_is_no_entry() -> None:
    groups = {
        Step("main"): FunctionGroup(row("main", 10), (), (row("f", 5, 5),)),
        Step("f"): FunctionGroup(row("f", 5, 5)),
    }
    assert flat(call_tree_estimate.tree(groups)[0]) == [("/main", 10.0, 0.0), ("/main/f", 5.0, 5.0)]


def test_a_report_with_very_many_call_paths_ends() -> None:
    """Each of 60 functions calls all later ones: 2 to the 59th ways."""
    count = 60
    groups = {
        Step(f"f{n}"): FunctionGroup(
            row(f"f{n}", count - n),
            tuple(row(f"f{m}", 1) for m in range(n)),
            tuple(row(f"f{m}", 1) for m in range(n + 1, count)),
        )
        for n in range(count)
    }
    root, notes = call_tree_estimate.tree(groups)
    assert len(flat(root)) <= call_tree_estimate.MAX_NODES
    assert notes


def test_a_callee_without_rows_is_a_leaf_and_zero_divides_nothing() -> None:
    groups = {
        Step("main"): FunctionGroup(row("main", 10), (), (row("gone", 4), row("none", 0))),
        Step("none"): FunctionGroup(row("none", 0), (row("main", 0),), (row("x", 3),)),
    }
    assert flat(call_tree_estimate.tree(groups)[0]) == [
        ("/main", 10.0, 0.0), ("/main/gone", 4.0, 0.0), ("/main/none", 0.0, 0.0),
    ]  # fmt: skip


# ---- export ----


@pytest.mark.parametrize(("weight", "measure"), [("wait", "elapsed"), ("count", "samples")])
def test_an_exported_report_is_read_back_unchanged(weight: str, measure: str) -> None:
    profile = SnapshotProfile(scenarios.deadlock())
    written = vsperf_csv.render(profile, weight_of(profile.weights, weight), idle=False)
    report = parse(written.encode(), "ours.csv")
    assert report.notes == ()
    assert report.processes == ("store 4711",)
    factor = 1000.0 if weight == "wait" else 1.0
    whole = profile.tree(weight)
    ours = {path: (value, own) for path, value, own in flat(whole) if value > 0}
    theirs = {path: (value / factor, own / factor) for path, value, own in tree_of(report, measure)}
    # No function here has two callers, so that the estimate is exact.
    assert theirs.keys() == ours.keys()
    for path, (value, own) in theirs.items():
        assert value == pytest.approx(ours[path][0], rel=1e-6)
        assert own == pytest.approx(ours[path][1], rel=1e-6)


def test_butterflies_survive_export_and_import() -> None:
    profile = SnapshotProfile(scenarios.deadlock())
    written = vsperf_csv.render(profile, weight_of(profile.weights, "count"), idle=True)
    report = ReportProfile(parse(written.encode(), "ours.csv"), "ours.csv")
    read = {(step.name, step.module): one for step, one in report.butterflies("samples").items()}
    ours = profile.butterflies("count")
    assert len(read) == len([one for one in ours.values() if one.value + one.idle > 0])
    for step, made in ours.items():
        if made.value + made.idle == 0:
            continue
        theirs = read[step.name, step.module]
        assert theirs.value == made.value + made.idle
        assert theirs.own == made.own + made.own_idle
        for mine, other in ((made.callers, theirs.callers), (made.callees, theirs.callees)):
            assert {wing.step.name: wing.value for wing in other} == {
                wing.step.name: wing.value + wing.idle for wing in mine
            }


def test_an_exported_report_has_the_usual_order_of_rows() -> None:
    profile = SnapshotProfile(scenarios.deadlock())
    lines = vsperf_csv.render(profile, weight_of(profile.weights, "count"), idle=False).split(
        "\r\n"
    )
    assert lines[0] == SAMPLING
    assert lines[1].startswith('"Root","start_thread",269')
    kinds = [line.split(",")[0] for line in lines[1:] if line]
    order = {'"Root"': 0, '"Caller"': 1, '"Callee"': 2}
    for before, after in pairwise(kinds):
        assert order[after] == 0 or order[after] >= order[before]
