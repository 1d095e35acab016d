"""The result of a gate as JUnit XML: one test case for each lock class."""

from __future__ import annotations

from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from locktop.collector.extensions.gate import sentences, text_report
from locktop.collector.extensions.gate.model import (
    ClassVerdict,
    Comparison,
    GateOutcome,
    GateResult,
)

_SUITE = "locktop gate"
#: Answers that are in the test cases of the classes.
_OF_CLASSES = {GateOutcome.SAME, GateOutcome.WORSE}


def render(result: GateResult) -> bytes:
    """Return the document."""
    gating = [entry for entry in result.comparisons if entry.gates]
    suite = Element("testsuite", name=_SUITE)
    for entry in gating:
        _add_case(suite, entry)
    whole = _case(suite, "the whole gate")
    if result.outcome not in _OF_CLASSES:
        _add_fault(whole, "error", sentences.headline(result))
    counts = {tag: len(suite.findall(f"testcase/{tag}")) for tag in ("failure", "error")}
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(counts["failure"]))
    suite.set("errors", str(counts["error"]))
    suite.set("skipped", "0")
    suite.set("time", f"{result.duration_s:.3f}")
    suite.set("timestamp", result.taken_at.removesuffix("Z"))
    # Only clean text is in the report, so XML knows all its characters.
    SubElement(suite, "system-out").text = text_report.render(result)
    suites = Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    document: bytes = ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _add_case(suite: Element, entry: Comparison) -> None:
    case = _case(suite, sentences.subject(entry))
    if entry.verdict is ClassVerdict.WORSE:
        _add_fault(case, "failure", sentences.growth_text(entry))
    elif entry.verdict is ClassVerdict.UNCLEAR:
        _add_fault(case, "error", sentences.noise_text(entry))


def _case(suite: Element, name: str) -> Element:
    return SubElement(suite, "testcase", classname="locktop.gate", name=name, time="0")


def _add_fault(case: Element, tag: str, message: str) -> None:
    SubElement(case, tag, message=message, type="gate").text = message
