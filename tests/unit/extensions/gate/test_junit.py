"""The result of a gate as JUnit XML, read by junitparser, and by expat through ElementTree."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from junitparser import Error, Failure, JUnitXml, TestSuite
from unit.builders.gate_results import (
    HOSTILE,
    LONGER,
    NOTHING,
    SAME,
    STEADY,
    UNCLEAR,
    WORSE,
    comparison,
    result,
)

from locktop.collector.extensions.gate import junit
from locktop.collector.extensions.gate.model import GateResult
from locktop.collector.sanitize import clean


def suite_of(whole: GateResult) -> TestSuite:
    [suite] = JUnitXml.fromstring(junit.render(whole))
    assert suite.name == "locktop gate"
    return suite


def test_a_longer_hold_is_a_failure() -> None:
    suite = suite_of(WORSE)
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (3, 1, 0, 0)
    longer, other, whole = suite
    assert longer.name == "the hold of mutex g_lock"
    [failure] = longer.result
    assert isinstance(failure, Failure)
    assert failure.message.startswith("the hold of mutex g_lock is longer by +30.0 %")
    assert other.result == whole.result == []


def test_waits_that_do_not_decide_are_no_case() -> None:
    assert [case.name for case in suite_of(SAME)] == ["the hold of mutex g_lock", "the whole gate"]


@pytest.mark.parametrize("whole", [UNCLEAR, NOTHING])
def test_no_answer_is_an_error(whole: GateResult) -> None:
    suite = suite_of(whole)
    *_, last = suite
    assert suite.errors == len(list(suite))
    assert suite.failures == 0
    [error] = last.result
    assert isinstance(error, Error)
    assert error.message.startswith(str(whole.outcome))


def test_the_counts_are_those_that_a_reader_counts_anew() -> None:
    for whole in (SAME, WORSE, UNCLEAR, NOTHING):
        xml = JUnitXml.fromstring(junit.render(whole))
        [suite] = xml
        counts = suite.tests, suite.failures, suite.errors, suite.skipped
        suite.update_statistics()
        assert counts == (suite.tests, suite.failures, suite.errors, suite.skipped)


def test_a_hostile_name_stays_text() -> None:
    data = junit.render(result(comparison(STEADY, LONGER, HOSTILE), name=HOSTILE))
    [case, _] = JUnitXml.fromstring(data).__iter__().__next__()
    assert case.name == f"the hold of {clean(f'mutex {HOSTILE}')}"
    tags = {element.tag for element in ElementTree.fromstring(data).iter()}
    assert tags == {"testsuites", "testsuite", "testcase", "failure", "system-out"}
