"""Threads that only look like holders."""

import contextlib
import os
import threading

from python_scenarios.blocks import context_manager_function, exit_stack, guarded, plain
from python_scenarios.registry import (
    KEPT,
    arrive,
    held_by,
    hold,
    say,
    scenario,
    start,
    start_waiter,
    takes,
)


def after_block(lock):
    """The values of the block still lie above the top of the stack."""
    with lock:
        pass
    hold()


def after_exception(lock):
    with contextlib.suppress(ValueError), lock:
        raise ValueError
    hold()


def after_context_manager(lock):
    with guarded(lock):
        pass
    manager = guarded(lock)
    with manager:
        pass
    hold()


def before_context_manager(lock):
    manager = guarded(lock)
    KEPT.append(manager)
    with open(os.devnull):
        hold()


def after_exit_stack(lock):
    with contextlib.ExitStack() as stack:
        stack.enter_context(lock)
        stack.close()
        hold()


def in_exit_stack_of_function(lock):
    """The block calls the release of another lock, and only refers to this lock."""
    with contextlib.ExitStack() as stack:
        stack.callback(lock.release)
        stack.enter_context(threading.Lock())
        stack.callback(print, lock)
        hold()


def has_references(lock):
    leave, enter, both = lock.__exit__, lock.__enter__, [lock, lock.__exit__]
    for _ in iter([leave]):
        hold()
    return enter, both


def in_other_block(lock, **names):
    with threading.Lock():
        hold()
    return names


def in_condition_wait(lock):
    condition = threading.Condition(lock)
    with condition:
        arrive()
        condition.wait()


@held_by(onlookers=[has_references, in_other_block])
def onlookers_with_references(lock):
    plain(lock)


@held_by(onlookers=[after_block, after_exception])
def onlookers_that_left(lock):
    plain(lock)


@held_by(onlookers=[after_context_manager, before_context_manager])
def onlookers_with_context_managers(lock):
    context_manager_function(lock)


@held_by(onlookers=[after_exit_stack, in_exit_stack_of_function])
def onlookers_with_exit_stacks(lock):
    exit_stack(lock)


@held_by(onlookers=[in_condition_wait, in_condition_wait])
def onlookers_in_condition_wait(lock):
    plain(lock)


@scenario
def onlookers_at_other_lock():
    first, second = threading.Lock(), threading.Lock()
    holders = start(plain, first), start(plain, second)
    say({start_waiter(takes, first): [holders[0]], start_waiter(takes, second): [holders[1]]})
