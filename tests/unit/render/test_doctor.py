"""The answers of the doctor as text and as JSON."""

from __future__ import annotations

import json

import pytest

from locktop.collector.model.diagnosis import WATCH, Diagnosis, full, limited, none
from locktop.collector.render.doctor import doctor_json, doctor_text

RIGHTS = limited("rights", "one two three four five", "six seven")


@pytest.mark.parametrize(
    ("diagnosis", "lines"),
    [
        (
            Diagnosis((RIGHTS, full("kernel", "6.1")), 7, "app"),
            ["Only a part of process 7 (app) is visible:",
             "  limited  rights  one two three",
             "                   four five",
             "                   -> six seven",
             "  ok       kernel  6.1"],
        ),
        (
            Diagnosis((full("kernel", "6.1"),), 7, "app"),
            ["All of process 7 (app) is visible:", "  ok       kernel  6.1"],
        ),
        (
            Diagnosis((none(WATCH, "a kernel\x1b thread"),), 7, "app"),
            ["locktop cannot watch process 7 (app):", "  no       watch  a kernel? thread"],
        ),
        (
            Diagnosis((full("perf", "6.1"),)),
            ["What this machine allows:", "  ok       perf  6.1"],
        ),
    ],
)  # fmt: skip
def test_facts_stay_in_their_column(diagnosis: Diagnosis, lines: list[str]) -> None:
    assert doctor_text(diagnosis, 34).splitlines() == lines


def test_the_document_has_null_for_what_is_not_known() -> None:
    whole = {"format": "locktop.doctor", "version": 1, "sight": "limited"}
    rights = {
        "name": "rights", "sight": "limited", "fact": "one two three four five",
        "remedy": "six seven",
    }  # fmt: skip
    kernel = {"name": "kernel", "sight": "ok", "fact": "6.1", "remedy": None}
    process = json.loads(doctor_json(Diagnosis((RIGHTS, full("kernel", "6.1")), 7, "app")))
    assert process == whole | {"pid": 7, "comm": "app", "checks": [rights, kernel]}
    machine = json.loads(doctor_json(Diagnosis((RIGHTS,))))
    assert machine == whole | {"pid": None, "comm": None, "checks": [rights]}
