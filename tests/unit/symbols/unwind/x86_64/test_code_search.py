"""Search of assembled code for the first use of a lock, on all of its ways."""

from __future__ import annotations

from pathlib import Path

import pytest
from iced_x86 import Register
from unit.builders.code_source import STARTS, CodeSource

from locktop.collector.symbols.unwind.first_use import NextUse, SoughtLock
from locktop.collector.symbols.unwind.x86_64.code_search import CodeSearch
from locktop.collector.symbols.unwind.x86_64.machine_state import MachineState

LOCK, GUARD, BOX = 0x15000, 0x16000, 0x17000
SP = 0x18000
#: By address: the words of memory. The lock is held.
MEMORY = {LOCK: 1, GUARD: LOCK, BOX: GUARD, BOX + 8: STARTS[1], SP: 0}
LOWERS, RAISES, NOTHING = NextUse(lowers=True), NextUse(raises=True), NextUse()
DOUBTED = NextUse(writes=True)
#: A system call for another futex: rsi is the operation.
FUTEX_CALL = "mov $202, %eax; mov ${}, %esi; syscall; "
WAKE, WAIT = FUTEX_CALL.format(129), FUTEX_CALL.format(128)
UNLOCK = "lock decl (%rdi); ret"
LOCK_IT = "xor %eax, %eax; mov $1, %ecx; lock cmpxchg %ecx, (%rdi); ret"
#: The text of a function, that of the function f1, and what the first does. At its begin rbx
#: is the lock, rbp the guard, which has the lock's address, and r12 has the guard's address.
USES: dict[tuple[str, str], NextUse] = {
    ("movl $0, (%rbx); ret", ""): LOWERS,
    ("xor %eax, %eax; xchg %eax, (%rbx); ret", ""): LOWERS,
    ("mov $-1, %eax; lock xadd %eax, (%rbx); ret", ""): LOWERS,
    ("mov $1, %al; xor %ecx, %ecx; lock cmpxchg %cl, (%rbx); ret", ""): LOWERS,
    ("mov (%rbp), %rdi; lock andl $-2, (%rdi); ret", ""): LOWERS,
    ("mov %rbx, %rdi; call f1; ret", UNLOCK): LOWERS,
    ("mov %rbx, %rdi; jmp f1", UNLOCK): LOWERS,
    ("mov 8(%r12), %rax; mov %rbx, %rdi; call *%rax; ret", UNLOCK): LOWERS,
    ("mov %rbx, %rdi; call *8(%r12); ret", UNLOCK): LOWERS,
    ("mov %r12, %rdi; call f1; ret", "mov (%rdi), %rdi; mov (%rdi), %rdi; " + UNLOCK): LOWERS,
    ("mov %rbx, %rdi; call f1; movl $0, (%rbx); ret", LOCK_IT): RAISES,
    ("mov %rbx, %rdi; call f1; movl $0, (%rbx); ret", "1: pause; jmp 1b"): RAISES,
    ("call f1; movl $0, (%rbx); ret", "ud2"): NOTHING,
    ("test %edx, %edx; je 1f; movl $0, (%rbx); 1: ret", ""): LOWERS,
    ("test %edx, %edx; je 1f; movl $0, (%rbx); ret; 1: movl $2, (%rbx); ret", ""): NextUse(
        lowers=True, raises=True
    ),
    ("cmpl $1, (%rbx); je 1f; movl $2, (%rbx); 1: movl $0, (%rbx); ret", ""): LOWERS,
    ("mov $4, %ecx; 1: dec %ecx; jne 1b; movl $0, (%rbx,%rcx); ret", ""): LOWERS,
    ("1: cmpl $0, (%r12); jne 1b; movl $0, (%rbx); ret", ""): LOWERS,
    (
        "lea 2f(%rip), %rcx; movslq (%rcx,%rdx,4), %rax; add %rcx, %rax; push %rax; jmp *%rax;"
        " 1: movl $0, (%rbx); ret; 2: .long 1b-2b, 1b-2b",
        "",
    ): NOTHING,
    ("mov %rdx, %rax; mov (%rax), %rdi; lock decl (%rdi); ret", ""): NOTHING,
    # The result of a function, in memory, is not known if its ways differ.
    (
        "mov %r12, %rdi; call f1; cmpl $0, 16(%r12); jne 1f; movl $0, (%rbx); 1: ret",
        "test %edx, %edx; je 1f; movl $1, 16(%rdi); jmp 2f; 1: movl $0, 16(%rdi); 2: ret",
    ): LOWERS,
    (
        "mov %r12, %rdi; call f1; test %eax, %eax; jne 1f; movl $0, (%rbx); 1: ret",
        "mov $1, %eax; test %edx, %edx; je 1f; ret; 1: mov $0, %eax; ret",
    ): LOWERS,
    # A function cannot return as the memory is now, so the memory will be another.
    (
        "mov %r12, %rdi; call f1; movl $0, (%rbx); ret",
        "cmpl $0, 32(%rdi); jne 1f; ud2; 1: ret",
    ): LOWERS,
    ("mov %r12, %rdi; call f1; movl $0, (%rbx); ret", "jmp *%r13"): DOUBTED,
    (
        "mov %r12, %rdi; call f1; movl $0, (%rbx); ret",
        "test %edx, %edx; je 1f; jmp *%r13; 1: ret",
    ): DOUBTED,
    ("mov %r12, %rdi; call f1; movl $2, (%rbx); ret", "jmp *%r13"): RAISES,
    # A function that calls itself returns as on its ways that do not.
    (
        "mov %r12, %rdi; call f1; movl $0, (%rbx); ret",
        "test %edx, %edx; je 1f; call f1; mov %r12, %rdi; call f1; 1: ret",
    ): LOWERS,
    (
        "mov %rbx, %rdi; call f1; movl $0, (%rbx); ret",
        "test %edx, %edx; je 1f; call f1; mov %rbx, %rdi; call f1; 1: movl $2, (%rbx); ret",
    ): RAISES,
    # A function that is not known gets another object.
    ("mov %r12, %rdi; call f1; movl $0, (%rbx); ret", "xor %edi, %edi; jmp *%r13"): LOWERS,
    ("mov %r12, %rdi; call f1; movl $0, (%rbx); ret", "mov %r13, %rdi; jmp *%r13"): DOUBTED,
    (WAKE * 5 + "movl $0, (%rbx); ret", ""): LOWERS,
    (WAIT * 5 + "movl $0, (%rbx); ret", ""): NOTHING,
    (
        "pxor %xmm0, %xmm0; movups %xmm0, (%rsp); cmpl $0, (%rsp); je 1f; movl $2, (%rbx); ret;"
        " 1: movl $0, (%rbx); ret",
        "",
    ): LOWERS,
}


def read(address: int, size: int) -> bytes:
    """Return some of MEMORY."""
    begin = address & ~7
    data = b"".join(
        MEMORY.get(word, 0).to_bytes(8, "little") for word in range(begin, address + size, 8)
    )
    return data[address - begin : address - begin + size]


@pytest.mark.parametrize("texts", USES)
def test_all_ways_are_followed_to_the_lock(texts: tuple[str, str], tmp_path: Path) -> None:
    source = CodeSource(tmp_path, *(text for text in texts if text))
    state = MachineState(
        {Register.RBX: LOCK, Register.RBP: GUARD, Register.R12: BOX, Register.RSP: SP}, {}
    )
    search = CodeSearch(source, SoughtLock(frozenset({LOCK})), read)
    assert search.follow(STARTS[0], state, 0).uses == USES[texts]


def test_libc_does_not_follow_references(tmp_path: Path) -> None:
    frees = "mov %r12, %rdi; call f1; movl $2, (%rbx); ret"
    source = CodeSource(tmp_path, frees, "mov (%rdi), %rdi; mov (%rdi), %rdi; " + UNLOCK)
    for source.libc_functions, use in ({STARTS[1]}, RAISES), (set(), LOWERS):
        state = MachineState({Register.RBX: LOCK, Register.R12: BOX, Register.RSP: SP}, {})
        search = CodeSearch(source, SoughtLock(frozenset({LOCK})), read)
        assert search.follow(STARTS[0], state, 0).uses == use


def test_ways_end_at_the_call_that_a_frame_is_in(tmp_path: Path) -> None:
    """A thread that takes the lock behind its call has not taken it yet."""
    source = CodeSource(tmp_path, "call f1; movl $1, (%rbx); ret")
    returns = next(iter(source.function(STARTS[0]).instructions.values())).next_ip
    state = MachineState({Register.RBX: LOCK, Register.RSP: SP}, {})
    search = CodeSearch(source, SoughtLock(frozenset({LOCK})), read, until=returns)
    assert search.follow(STARTS[0], state, 0).uses == NOTHING


def test_a_way_without_a_release_leads_to_the_end(tmp_path: Path) -> None:
    source = CodeSource(tmp_path, "test %edx, %edx; je 1f; movl $0, (%rbx); 1: ret")
    state = MachineState({Register.RBX: LOCK, Register.RSP: SP}, {})
    outcome = CodeSearch(source, SoughtLock(frozenset({LOCK})), read).follow(STARTS[0], state, 0)
    assert outcome.uses == LOWERS
    assert outcome.end is not None


@pytest.mark.parametrize(("rounds", "use"), [(3, LOWERS), (4, NOTHING)])
def test_a_loop_deep_in_calls_is_followed_for_three_rounds(
    rounds: int, use: NextUse, tmp_path: Path
) -> None:
    """The branch before it is not known. Each other way out of the loop is left to outer calls."""
    code = f"test %edx, %edx; je 1f; 1: mov ${rounds}, %ecx; 2: dec %ecx; jne 2b; "
    source = CodeSource(tmp_path, code + "movl $0, (%rbx); ret")
    state = MachineState({Register.RBX: LOCK, Register.RSP: SP}, {})
    search = CodeSearch(source, SoughtLock(frozenset({LOCK})), read)
    assert search.follow(STARTS[0], state, depth=2).uses == use


def test_only_the_bits_that_tell_of_a_holder_count(tmp_path: Path) -> None:
    lock = SoughtLock(frozenset({LOCK}), held_bits=1)
    code = "mov $1, %eax; mov $3, %ecx; lock cmpxchg %ecx, (%rbx); movl $2, (%rbx); ret"
    state = MachineState({Register.RBX: LOCK, Register.RSP: SP}, {})
    search = CodeSearch(CodeSource(tmp_path, code), lock, read)
    assert search.follow(STARTS[0], state, 0).uses == LOWERS


def test_a_semaphore_is_released_when_its_value_gets_higher() -> None:
    semaphore = SoughtLock(frozenset({LOCK}), is_free_high=True)
    assert semaphore.is_released(RAISES)
    assert semaphore.is_taken(LOWERS)
    assert semaphore.take == LOWERS
