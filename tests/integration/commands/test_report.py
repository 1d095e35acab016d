"""`locktop report` as its readers see it: the page in Debian's chromium, by the keyboard."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from support import chromium, tool
from support.chromium import Browser
from support.pythons import PYTHON
from support.report_page import data_of, page_of
from support.targets import Compiler, StartTarget, Target, source_of
from unit.builders import scenarios
from unit.builders.records import lock

from locktop.collector.render.documents import snapshot_codec
from locktop.collector.render.words import units
from locktop.collector.sources.launch import preload_environment

WIDTHS = (1280, 390)
#: Markup, quotes and control codes; and 4 KB of a name.
HOSTILE = (
    "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>'\"`"
)
LONG = "n" * 4096
#: Four threads take the lock `shared` 300 times in a second, and keep it for 3 ms.
TARGET, PACE = "paced_pairs", ("4", "1000000000", "300", "100", "3000")
#: More than the elements of the page that the Tab key reaches.
MAX_TABS = 200


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all tests: its start takes most of the time."""
    with chromium.browser() as started:
        started.resize(1280)
        yield started


@pytest.fixture(scope="module")
def recording(compiler: Compiler, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of four threads that share a lock."""
    path = tmp_path_factory.mktemp("report") / "shared.rec"
    with Target([compiler.program(TARGET), *PACE], preload_environment()) as target:
        target.expect("ready")
        target.go_on()
        tool.run("record", "-p", target.pid, "-d", "1", "-o", str(path))
    return path


@pytest.fixture(scope="module")
def page(recording: Path) -> Path:
    """The report of the recording."""
    return report(recording, recording.with_suffix(".html"))


def report(source: Path, path: Path, *options: str) -> Path:
    done = tool.run("report", str(source), "-o", str(path), *options)
    assert done.returncode == 0, done.stderr
    return path


def saved(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def table_cells(browser: Browser, noun: str) -> list[dict[str, dict[str, Any]]]:
    """Return the rows of a table: by the head of the column, the text and the value."""
    rows: list[dict[str, dict[str, Any]]] = browser.evaluate(
        f"""(() => {{
          const table = document.getElementById("{noun}-table");
          const heads = [...table.tHead.rows[0].cells].map((head) =>
            head.textContent.replace(/ [▾▴]$/, ""));
          return [...table.tBodies[0].rows].map((row) => Object.fromEntries(
            [...row.cells].map((cell, number) => [heads[number],
              {{ text: cell.textContent, value: cell.dataset.value ?? null }}])));
        }})()"""
    )
    return rows


def focus(browser: Browser, selector: str) -> None:
    browser.evaluate(f"document.querySelector({json.dumps(selector)}).focus()")


def text_of(browser: Browser, id_: str) -> str:
    return str(browser.evaluate(f"document.getElementById('{id_}').textContent"))


def assert_quiet(browser: Browser) -> None:
    """No request leaves the page, and nothing complains."""
    assert browser.requests() == []
    assert browser.complaints() == []


def test_the_figures_are_those_of_the_snapshot(
    browser: Browser, page: Path, recording: Path
) -> None:
    snapshot = json.loads(tool.run("snapshot", str(recording)).stdout)
    assert data_of(page.read_text())["snapshot"] == snapshot
    browser.open(page)
    rows = {row["tid"]["text"]: row for row in table_cells(browser, "thread")}
    assert rows.keys() == {str(thread["tid"]) for thread in snapshot["threads"]}
    for thread in snapshot["threads"]:
        row = rows[str(thread["tid"])]
        assert float(row["cpu"]["value"]) == thread["cpu_s"]
        assert row["cpu"]["text"] == units.duration(thread["cpu_s"])
        assert float(row["waited"]["value"]) == thread["wait_s"].get("mutex", 0.0)
        assert int(row["taken"]["value"]) == thread["acquisitions"]
    for entry, row in zip(snapshot["locks"], table_cells(browser, "lock"), strict=True):
        for head, key in (("waited", "wait_s"), ("longest wait", "wait_max_s"), ("held", "hold_s")):
            assert float(row[head]["value"]) == entry[key]
            assert row[head]["text"] == units.duration(entry[key])
        assert int(row["waits"]["value"]) == entry["contended"]
    assert_quiet(browser)


def test_the_heat_map_has_all_waits_of_the_time_line(browser: Browser, page: Path) -> None:
    data = data_of(page.read_text())
    waits = data["lanes"]["states"].index("waits")
    waited_us = sum(
        duration
        for lane in data["lanes"]["lanes"]
        for duration, state in zip(lane["spans"][::3], lane["spans"][1::3], strict=True)
        if state == waits
    )
    browser.open(page)
    total_us = float(browser.evaluate("document.getElementById('heat-now').dataset.us"))
    assert total_us == pytest.approx(waited_us, rel=1e-3)
    assert "waits for mutex shared" in text_of(browser, "time-legend")


def test_durations_read_as_in_all_other_texts(browser: Browser, tmp_path: Path) -> None:
    chosen = random.Random(1)
    some = [0.0, 0.125, 1e-9, 0.9995, 9.995, 99.95, 599.999, 600.0, 3600.0, 90_000.5, 1.25e-5]
    some += [10 ** chosen.uniform(-9, 6) for _ in range(39)]
    locks = tuple(lock(number + 1, f"m{number}", wait_s=s) for number, s in enumerate(some))
    content = page_of(replace(scenarios.empty(), locks=locks))
    browser.open(saved(tmp_path / "page.html", content))
    texts = [row["waited"]["text"] for row in table_cells(browser, "lock")]
    assert texts == [units.duration(s) for s in some]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_fits_and_has_the_colours_of_the_reader(
    browser: Browser, page: Path, tmp_path: Path, width: int, scheme: str
) -> None:
    deadlock = saved(tmp_path / "deadlock.html", page_of(scenarios.deadlock()))
    try:
        for path in (page, deadlock):
            browser.resize(width)
            browser.prefer(scheme)
            browser.open(path)
            assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
            color = browser.evaluate("getComputedStyle(document.body).backgroundColor")
            red = int(color.removeprefix("rgb(").split(",")[0])
            assert (red < 128) == (scheme == "dark")
            assert_quiet(browser)
    finally:
        browser.resize(1280)
        browser.prefer("light")


def test_the_tab_key_reaches_each_control(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.evaluate(
        """document.querySelectorAll("button, input, summary, a, #heat-map, #flame [tabindex='0']")
           .forEach((control) => { if (!control.disabled && control.offsetParent !== null)
             control.dataset.wanted = "yes"; })"""
    )
    focus(browser, "a")
    for _ in range(MAX_TABS):
        browser.evaluate("delete document.activeElement.dataset.wanted")
        browser.press("Tab")
    left = browser.evaluate(
        "[...document.querySelectorAll('[data-wanted]')].map((c) => c.outerHTML)"
    )
    assert left == []


def test_enter_on_a_head_sorts_and_a_text_filters(browser: Browser, page: Path) -> None:
    browser.open(page)
    focus(browser, "#thread-table th:nth-child(2) button")
    orders = []
    for _ in range(2):
        browser.press("Enter")
        orders.append([int(row["tid"]["text"]) for row in table_cells(browser, "thread")])
    assert orders == [sorted(orders[0], reverse=True), sorted(orders[0])]
    order = "document.querySelector('#thread-table th:nth-child(2)').ariaSort"
    assert browser.evaluate(order) == "ascending"
    focus(browser, "#thread-filter")
    for character in str(orders[0][0]):
        browser.press(character)
    assert [row["tid"]["text"] for row in table_cells(browser, "thread")] == [str(orders[0][0])]
    assert text_of(browser, "thread-count").startswith("1 thread of ")


def test_keys_choose_a_span_and_compare_a_second_one(browser: Browser, page: Path) -> None:
    browser.open(page)
    whole, whole_line = text_of(browser, "callers-hint"), text_of(browser, "time-hint")
    focus(browser, "#heat-map")
    browser.press("ArrowDown")
    assert text_of(browser, "heat-now").startswith("mutex shared, ")
    browser.press("ArrowRight")
    for _ in range(5):
        browser.press("ArrowRight", shift=True)
    browser.press("Enter")
    first = text_of(browser, "callers-hint")
    assert first.startswith("mutex shared, ")
    assert first != whole
    assert text_of(browser, "time-hint") != whole_line
    browser.press("End")
    browser.press("c")
    assert text_of(browser, "callers-hint").startswith("First: mutex shared, ")
    assert " a second, then " in text_of(browser, "flame-now")
    browser.press("Escape")
    assert text_of(browser, "callers-hint") == whole
    assert_quiet(browser)


def test_each_button_of_the_heat_map_works_by_the_keyboard(browser: Browser, page: Path) -> None:
    browser.open(page)

    def press(id_: str) -> None:
        focus(browser, f"#{id_}")
        browser.press("Enter")

    now = text_of(browser, "heat-now")
    press("by-thread")
    assert text_of(browser, "heat-now").startswith("all threads, ")
    focus(browser, "#heat-map")
    browser.press("End")
    chosen = text_of(browser, "heat-now")
    press("choose")
    assert browser.evaluate("!document.getElementById('compare').disabled")
    press("zoom-in")
    assert browser.evaluate("!document.getElementById('whole').disabled")
    press("zoom-out")
    assert text_of(browser, "heat-now").split(":")[0] == chosen.split(":")[0]
    press("compare")
    assert text_of(browser, "callers-hint").startswith("First: ")
    press("whole")
    assert browser.evaluate("document.getElementById('zoom-out').disabled")
    press("clear")
    press("by-lock")
    assert text_of(browser, "heat-now") == now


def test_the_mouse_chooses_a_span(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.evaluate("document.getElementById('heat-map').scrollIntoView({behavior: 'instant'})")
    box = browser.evaluate("document.getElementById('heat-map').getBoundingClientRect().toJSON()")
    second_row = box["top"] + 30
    for kind, x in (("Pressed", 200), ("Moved", 100), ("Released", 100)):
        browser.send(
            "Input.dispatchMouseEvent",
            type=f"mouse{kind}",
            x=box["right"] - x,
            y=second_row,
            button="left",
            buttons=1,
            clickCount=1,
        )
    assert text_of(browser, "callers-hint").startswith("mutex shared, ")


def test_keys_walk_through_the_callers(browser: Browser, page: Path) -> None:
    browser.open(page)
    focus(browser, "#flame [tabindex='0']")
    assert text_of(browser, "flame-now").startswith("all callers: ")
    texts = []
    for _ in range(30):
        browser.press("ArrowDown")
        texts.append(text_of(browser, "flame-now"))
    assert any("paced_pairs.c:" in text for text in texts)
    boxes = "document.querySelectorAll('#flame [role=treeitem]').length"
    browser.press("Enter")
    assert browser.evaluate(boxes) <= len(set(texts)) + 1
    browser.press("Escape")
    assert text_of(browser, "flame-now").startswith("all callers: ")


def test_hostile_names_are_text(browser: Browser, tmp_path: Path) -> None:
    calm = scenarios.deadlock()
    names = (HOSTILE, LONG, "\x1b[31mred\x07\u202e", "線程の名前")
    threads = tuple(
        replace(thread, name=names[number % 4]) for number, thread in enumerate(calm.threads)
    )
    locks = tuple(replace(entry, name=names[number % 4]) for number, entry in enumerate(calm.locks))
    stacks = {
        id_: tuple(replace(frame, function=HOSTILE, file=LONG) for frame in frames)
        for id_, frames in calm.stacks.items()
    }
    process = replace(calm.process, comm=HOSTILE, cmdline=(HOSTILE, LONG))
    hostile = replace(
        calm, threads=threads, locks=locks, stacks=stacks, process=process, host=HOSTILE
    )
    # Once as a program names its threads, once as a stranger's file does.
    direct = saved(tmp_path / "direct.html", page_of(hostile))
    file = saved(tmp_path / "hostile.json", snapshot_codec.encode(hostile))
    for path in (direct, report(file, tmp_path / "file.html")):
        for width in WIDTHS:
            browser.resize(width)
            browser.open(path)
            assert HOSTILE[:30] in browser.evaluate("document.body.innerText")
            assert browser.evaluate("document.scripts.length") == 3
            assert browser.evaluate("document.images.length") == 0
            assert "locktop report" in browser.evaluate("document.title")
            assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert_quiet(browser)
    browser.resize(1280)


def test_the_page_prints(browser: Browser, page: Path) -> None:
    browser.open(page)
    printed = browser.pdf()
    assert printed.startswith(b"%PDF")
    assert len(printed) > 10_000
    assert_quiet(browser)


def test_a_running_process_and_parts_of_a_recording(
    browser: Browser, recording: Path, start_target: StartTarget, tmp_path: Path
) -> None:
    target = start_target(TARGET, *PACE)
    target.expect("ready")
    target.go_on()
    live = tmp_path / "live.html"
    done = tool.run("report", "-p", target.pid, "-d", "0.5", "-o", str(live))
    assert done.returncode == 0, done.stderr
    part = report(recording, tmp_path / "part.html", "--from", "-500ms")
    moment = report(recording, tmp_path / "moment.html", "--at", "50%")
    for path in (live, part, moment):
        data = data_of(path.read_text())
        heat, lanes = data["heat"], data["lanes"]
        assert heat["cell_us"] == 20_000
        assert heat["begin_ms"] == lanes["begin_ms"]
        assert 0 <= heat["cell_count"] * 20_000 - lanes["span_us"] <= 20_000
        browser.open(path)
        assert "mutex shared" in text_of(browser, "locks")
        assert_quiet(browser)
    interval = data_of(part.read_text())["snapshot"]["locks"][0]["interval"]
    assert (
        interval
        == json.loads(tool.run("snapshot", str(recording), "--from", "-500ms").stdout)["locks"][0][
            "interval"
        ]
    )


def test_a_process_without_the_library_is_an_estimate(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "sampled.html"
    with Target([PYTHON, source_of("orders_service")]) as target:
        target.expect("ready")
        done = tool.run("report", "-p", target.pid, "-d", "0.5", "-o", str(path))
    assert done.returncode == 0, done.stderr
    browser.open(path)
    assert "estimated from samples" in text_of(browser, "heat-hint")
    assert "estimated from samples" in text_of(browser, "time-hint")
    (row,) = table_cells(browser, "lock")
    assert row["holder"]["text"] == "~Thread-1 (charge_order)"
    waiters = [row for row in table_cells(browser, "thread") if row["waits for"]["text"]]
    assert len(waiters) == 4
    assert all(float(row["waited"]["value"]) > 0 for row in waiters)
    assert_quiet(browser)


def test_a_measurement_is_part_of_the_report_on_request(
    browser: Browser, start_target: StartTarget, tmp_path: Path
) -> None:
    target = start_target(TARGET, *PACE)
    target.expect("ready")
    target.go_on()
    path = tmp_path / "whatif.html"
    done = tool.run("report", "-p", target.pid, "-d", "0.5", "--whatif", "-o", str(path))
    assert done.returncode == 0, done.stderr
    browser.open(path)
    assert "WHAT A CHANGE WOULD GAIN" in text_of(browser, "parts-body")
    assert_quiet(browser)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ((), "report needs one of -p PID and FILE"),
        (("-p", "1", "FILE"), "report needs one of -p PID and FILE"),
        (("FILE", "-d", "1"), "-d needs -p PID"),
        (("FILE", "--from", "no-time"), "'no-time' is no time"),
        (("FILE", "--at", "50%", "--to", "60%"), "--at is one moment"),
        (("no-such-file",), "no-such-file"),
        (("FILE", "--hz", "9"), "--hz needs --inside and -p PID"),
        (("FILE", "-o", "FILE"), "exists; --force writes over it"),
    ],
)
def test_wrong_use_is_one_line(recording: Path, options: tuple[str, ...], reason: str) -> None:
    words = [str(recording) if word == "FILE" else word for word in options]
    done = tool.run("report", *words)
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert reason in line
