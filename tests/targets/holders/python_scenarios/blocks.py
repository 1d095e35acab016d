"""Where the block is in which a thread holds the lock."""

import asyncio
import concurrent.futures
import contextlib
import functools
import os
import sys
import threading

from python_scenarios.registry import (
    KEPT,
    arrived,
    held_by,
    hold,
    say,
    scenario,
    start,
    start_waiter,
    takes,
)


@held_by()
def plain(lock):
    with lock:
        hold()


@held_by()
def deep_in_calls(lock):
    def call(depth):
        return call(depth - 1) if depth else hold()

    with lock:
        call(100)


@held_by()
def closure(lock):
    def inner():
        with lock:
            hold()

    inner()


@held_by()
def lambda_function(lock):
    def calls(function):
        with lock:
            function()

    (lambda: calls(lambda: hold()))()


@held_by()
def generator(lock):
    def values():
        with lock:
            yield hold()

    list(values())


@held_by()
def generator_in_generator(lock):
    def inner():
        with lock:
            yield 1
            yield hold()

    def outer():
        yield from inner()

    for _ in outer():
        pass


@held_by()
def generator_after_yield(lock):
    def values():
        with lock:
            yield 1
            yield hold()

    list(values())


@scenario
def generator_of_another_thread():
    lock = threading.Lock()

    def values():
        with lock:
            yield 1
            yield hold()

    driven = values()

    def begins():
        next(driven)
        hold()

    start(begins)
    holder = start(list, driven)
    say({start_waiter(takes, lock): [holder]})


@contextlib.contextmanager
def guarded(lock):
    with lock:
        yield lock


@held_by()
def context_manager_function(lock):
    with guarded(lock):
        hold()


@held_by()
def context_manager_functions_nested(lock):
    @contextlib.contextmanager
    def outer():
        with guarded(lock), open(os.devnull):
            yield

    with outer():
        hold()


@held_by()
def exit_stack(lock):
    with contextlib.ExitStack() as stack:
        stack.enter_context(open(os.devnull))
        stack.enter_context(lock)
        hold()


@held_by()
def exit_stack_of_many(lock):
    with contextlib.ExitStack() as stack:
        for each in [*(threading.Lock() for _ in range(100)), lock]:
            stack.enter_context(each)
        hold()


@held_by()
def exit_stack_of_function(lock):
    with contextlib.ExitStack() as stack:
        stack.enter_context(guarded(lock))
        hold()


@held_by()
def outer_of_two(lock):
    with lock, threading.Lock():
        hold()


@held_by()
def inner_of_two(lock):
    with threading.Lock(), lock:
        hold()


@held_by()
def inner_of_ten(lock):
    def call(locks):
        if not locks:
            return hold()
        with locks[0]:
            return call(locks[1:])

    call([*(threading.Lock() for _ in range(9)), lock])


@held_by()
def handled_exception_in_block(lock):
    try:
        with lock:
            try:
                raise ValueError
            except ValueError:
                hold()
    finally:
        del lock


@held_by()
def block_in_handler(lock):
    try:
        raise ValueError
    except ValueError:
        with lock:
            for _ in range(2):
                with contextlib.suppress(KeyError):
                    hold()


@held_by()
def block_in_finally(lock):
    try:
        raise ValueError
    finally:
        with lock:
            hold()


class Base:
    def __init__(self, lock):
        self.lock = lock

    def change(self):
        with self.lock:
            self.store()

    def store(self):
        raise NotImplementedError

    @property
    def value(self):
        with self.lock:
            return hold()


class Derived(Base):
    def store(self):
        hold()

    def change(self):
        super().change()


@held_by()
def method_behind_subclass(lock):
    Derived(lock).change()


@held_by()
def in_property(lock):
    return Derived(lock).value


def synchronized(lock):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            with lock:
                return function(*args, **kwargs)

        return wrapper

    return decorate


@held_by()
def decorator(lock):
    synchronized(lock)(hold)()


@held_by()
def lock_in_dict(lock):
    locks = {"key": [lock]}
    with locks["key"][0] as taken:
        KEPT.append(taken)
        hold()


@held_by()
def in_comprehension(lock):
    def value(number):
        with lock:
            hold()
        return number

    return [value(number) for number in range(3)]


@held_by()
def called_from_c(lock):
    def key(number):
        with lock:
            hold()
        return number

    return sorted([2, 1], key=key)


@held_by()
def in_loop(lock):
    while True:
        for number in range(3):
            with lock:
                if number == 1:
                    hold()


@held_by()
def in_class_body(lock):
    with lock:

        class Made:
            held = hold()

    return Made


@held_by()
def in_exec(lock):
    exec("with lock:\n    hold()", {"lock": lock, "hold": hold})


@held_by()
def in_coroutine(lock):
    async def runs():
        with lock:
            hold()

    asyncio.run(runs())


@scenario
def pool_worker():
    lock = threading.Lock()
    pool = concurrent.futures.ThreadPoolExecutor(2)
    KEPT.append(pool.submit(plain, lock))
    holder = arrived.get()
    say({start_waiter(takes, lock): [holder]})


@scenario
def main_thread():
    lock = threading.Lock()
    with lock:
        say({start_waiter(takes, lock): [threading.get_native_id()]})
        sys.stdin.read()


@scenario
def many_waiters():
    lock = threading.Lock()
    holder = start(plain, lock)
    say({start_waiter(takes, lock): [holder] for _ in range(10)})
