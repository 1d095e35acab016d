"""glibc's own quick thread tests have the same results with the library as without it.

``make glibc-tests`` runs all of them.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from glibc.build import Built, NoSourceError, build
from glibc.run import Runner, library_environment
from support import requirements

#: Some tests of each family, by the rest of their names.
FAMILIES = {
    "mutex": "1 2 3 4 7 7robust 8 -errorcheck pi1 pi4 pp1",
    "cond": "1 2 7 8 10 12 13 19 26",
    "rwlock": "1 2 4 10 12 13 14",
    "sem": "1 3 7 8 9 13 16 17",
    "barrier": "1 2 4",
    "spin": "1 2",
    "cancel": "1 3 7 8 12 17 -self x2 x8 x12 x17",
    "robust": "1 3 5 7 pi1 pi5",
    "mtx-": "basic recursive timedlock trylock",
    "cnd-": "basic broadcast timedwait",
    "thrd-": "detach",
    "join": "1 4 6 11",
    "once": "1 3 5 x3",
    "call-": "once",
    "cleanup": "0 1 4 x0 x1",
    "exec": "1 3 4",
    "fork": "2 3 4",
    "atfork": "1",
    "create": "1",
    "minstack-": "cancel throw",
    "thread_local": "1",
    "tls": "3",
}
QUICK = [f"tst-{family}{rest}" for family, names in FAMILIES.items() for rest in names.split()]
#: Tests that unmap, copy or share locks, or take them from a dead owner: also with lock cookies.
WITH_COOKIES = (
    "tst-mutex4",
    "tst-mutex7",
    "tst-mutexpi1",
    "tst-cond12",
    "tst-cond13",
    "tst-rwlock12",
    "tst-robust7",
    "tst-robustpi1",
    "tst-cancel17",
    "tst-minstack-cancel",
)


@pytest.fixture(scope="module")
def built() -> Built:
    """The compiled tests."""
    try:
        return build(QUICK)
    except NoSourceError as error:
        requirements.missing(str(error), "glibc-source")


@pytest.fixture(scope="module")
def runner(built: Built) -> Iterator[Runner]:
    with library_environment(level=None) as library:
        yield Runner(built.programs, library)


@pytest.fixture(scope="module")
def cookie_runner(built: Built) -> Iterator[Runner]:
    with library_environment(level=None, order="mark") as library:
        yield Runner(built.programs, library)


@pytest.mark.parametrize("name", WITH_COOKIES)
def test_a_test_of_glibc_has_the_same_result_with_lock_cookies(
    name: str, built: Built, cookie_runner: Runner
) -> None:
    check_result(name, built, cookie_runner)


@pytest.mark.parametrize("name", QUICK)
def test_a_test_of_glibc_has_the_same_result(name: str, built: Built, runner: Runner) -> None:
    check_result(name, built, runner)


def check_result(name: str, built: Built, runner: Runner) -> None:
    if built.errors.get(name) == "c++ is missing":
        requirements.missing("c++", "g++")
    assert name not in built.errors, built.errors[name]
    comparison = runner.compare(name)
    if comparison.differs:
        comparison = runner.again(comparison)
    assert not comparison.differs, comparison
