"""Mangled names: those of compilers (g++ 12, rustc 1.95), and names that break demanglers."""

from __future__ import annotations

import contextlib
import os
import resource
import select
import subprocess
import sys
import time

import pytest

from locktop.collector.symbols import demangle_worker
from locktop.collector.symbols.demangle import demangle, strip_parameters

CXX = [
    ("_ZN12_GLOBAL__N_13fooEv", "(anonymous namespace)::foo"),
    (
        "_ZN12_GLOBAL__N_16Hidden4withIiEEvT_.constprop.0",
        "(anonymous namespace)::Hidden::with<int>",
    ),
    ("_ZL5g_mtx", "g_mtx"),
    ("_ZGVZN3app12local_staticEvE1s", "guard variable for app::local_static()::s"),
    ("_ZZN3app12local_staticEvE1s", "app::local_static()::s"),
    ("_ZZN3app12local_staticEvEN1L3getEv.constprop.0", "app::local_static()::L::get"),
    ("_ZTIZ4mainEUliE3_", "typeinfo for main::'lambda3'(int)"),
    ("_ZTVSt6vectorIZ4mainEUliE3_E", "vtable for std::vector<main::'lambda3'(int)>"),
    ("_ZThn16_N3FooIiE3barEi", "non-virtual thunk to Foo<int>::bar"),
    # parts that compilers separate
    ("_Z3foov.part.0", "foo"),
    ("_Z3foov.isra.0.cold", "foo"),
    ("_Z3foov.lto_priv.12", "foo"),
    ("_Z3foov.llvm.1234567890", "foo"),
    ("_Z3foov.resolver", "foo"),
    ("foo.part.0.constprop.1", "foo"),
    ("foo.cold", "foo"),
    ("counter.1", "counter.1"),
    (".cold", ".cold"),
    # operators and conversions
    ("_ZNK3FooclEi", "Foo::operator()"),
    ("_ZN3app4ConvcmEi", "app::Conv::operator,"),
    ("_ZN3app4ConvixEi", "app::Conv::operator[]"),
    ("_ZN3app4ConvlsEi", "app::Conv::operator<<"),
    ("_ZNK3app4ConvltERKS0_", "app::Conv::operator<"),
    ("_ZNK3app4ConvgtERKS0_", "app::Conv::operator>"),
    ("_ZNK3app4ConvssEi", "app::Conv::operator<=>"),
    ("_ZN3app4ConvptEv", "app::Conv::operator->"),
    ("_ZN3app4ConvnwEm", "app::Conv::operator new"),
    ("_ZNK3app4ConvcvbEv", "app::Conv::operator bool"),
    ("_ZNK1Acv1BIiEEv", "A::operator B<int>"),
    (
        "_ZNK3app4ConvcvNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEEv.isra.0",
        "app::Conv::operator …",
    ),
    ("_ZNK3app4ConvcvSt6vectorIT_SaIS2_EEIiEEv", "app::Conv::operator …"),
    ("_ZN3appli3_kmEy", 'app::operator"" _km'),
    ("_ZN1AlsIiEERS_T_", "A::operator<<<int>"),
    # parentheses, and words before the name
    ("_ZN3app6taggedB3tagEv", "app::tagged[abi:tag]"),
    ("_Z3tlsB5cxx11", "tls[abi:cxx11]"),
    ("_ZN3app13takes_pointerEPFviERA3_i", "app::takes_pointer"),
    ("_ZN3app20tmpl_returns_pointerIdEEPFvcET_.isra.0", "app::tmpl_returns_pointer<double>"),
    (
        "_ZN3app3SigIFviSt8functionIFvcEEEJEE4fireEv.isra.0",
        "app::Sig<void (int, std::function<void (char)>)>::fire",
    ),
    ("_ZNK3app5ConstILc40EE3getEv", "app::Const<(char)40>::get"),
    (
        "_ZNK3app5ConstIXadL_ZNS_2v110inlined_nsEvEEE3getEv",
        "app::Const<&app::v1::inlined_ns()>::get",
    ),
    ("_ZN3app5twiceIiEET_S1_.isra.0", "app::twice<int>"),
    ("_ZN3app4callIZ4mainEUlvE0_EEvT_", "app::call<main::'lambda0'()>"),
    ("_ZN3app4callIZ4mainEUlDpT_E1_EEvT_.constprop.0", "app::call<main::'lambda1'(auto...)>"),
    (
        "_ZN3app4callIZZ4mainENKUlvE0_clEvEUlvE_EEvT_.constprop.0",
        "app::call<main::'lambda0'()::operator()() const::'lambda'()>",
    ),
    (
        "_ZZZ4mainENKUlvE0_clEvENKUlvE_clEv",
        "main::'lambda0'()::operator()() const::'lambda'()::operator()",
    ),
    ("_ZNKR1A1fEv", "A::f"),
    ("_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int, std::allocator<int>>::push_back"),
    (
        "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE10_M_disposeEv",
        "std::string::_M_dispose",
    ),
]

#: A name of the older mangling that DWARF completes.
GUARDED = "_ZN3std4sync6poison5mutex14Mutex$LT$T$GT$4lock17hfd967cb422e0c555E<app::Journal>"
RUST = [
    (GUARDED, "std::sync::poison::mutex::Mutex<app::Journal>::lock"),
    ("_ZN4core3fmt9Formatter3pad17h9b2b3a0e5b4d1b31E", "core::fmt::Formatter::pad"),
    ("_ZN4core3fmt9Formatter3pad17h9b2b3a0e5b4d1b31E.llvm.4711", "core::fmt::Formatter::pad"),
    ("_ZN5alloc4sync16Arc$LT$T$C$A$GT$4drop17h123456789abcdef0E", "alloc::sync::Arc<T,A>::drop"),
    (
        "_ZN43_$LT$r..W$u20$as$u20$core..fmt..Display$GT$3fmt17h8dea9487f82602bcE",
        "<r::W as core::fmt::Display>::fmt",
    ),
    (
        "_ZN75_$LT$$RF$$u5b$$LP$u8$C$alloc..string..String$RP$$u5d$$u20$as$u20$r..Run$GT$"
        "3run17h4b04feee8bc3da76E",
        "<&[(u8,alloc::string::String)] as r::Run>::run",
    ),
    ("_ZN4main28_$u7b$$u7b$closure$u7d$$u7d$17h086b0cfd890a8ea9E", "main::{{closure}}"),
    ("_RNvC6_123foo3bar", "123foo::bar"),
    ("_RNvCs6GmmlP4bgsG_1r4main", "r::main"),
    ("_RNvCs6GmmlP4bgsG_1r4main.llvm.4711", "r::main"),
    (
        "_RINvNtCs6GmmlP4bgsG_1r5inner3genNCNvB4_4mains0_0EB4_",
        "r::inner::gen::<r::main::{closure#2}>",
    ),
    ("_RNvMNtCs6GmmlP4bgsG_1r5innerINtB2_4PoolyE4takeB4_", "<r::inner::Pool<u64>>::take"),
    (
        "_RNvXCs6GmmlP4bgsG_1rNtB2_1WNtNtCsgEmfK2I1SDS_4core3fmt7Display3fmt",
        "<r::W as core::fmt::Display>::fmt",
    ),
    ("_RNvXs1_Cs6GmmlP4bgsG_1rFhElNtB5_3Run3runB5_", "<fn(u8) -> i32 as r::Run>::run"),
]

NOT_MANGLED = [
    "main",
    "i",
    "_Z",
    "_R",
    "",
    "_ZN",
    "_RNv",
    "__Z",
    "_Z" + "N" * 100_000,
    "_ZSt" * 400,
]


@pytest.mark.parametrize(("symbol", "name"), [*CXX, *RUST, *((name, name) for name in NOT_MANGLED)])
def test_mangled_names_become_readable(symbol: str, name: str) -> None:
    assert demangle(symbol) == name


def unfolding(levels: int) -> str:
    """A name in which each part contains the former part twice."""
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    parts = ["S_", *(f"S{digit}_" for digit in digits)][1:levels]
    return "_Z1f1AIiiE" + "".join(f"S_I{part}{part}E" for part in parts)


def test_a_forged_name_does_not_unfold_beyond_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """40 levels would unfold to terabytes."""
    apart = demangle_worker.new_worker()
    monkeypatch.setattr(demangle_worker, "worker", apart)
    for levels in (10, 11, 12):
        assert demangle(unfolding(levels)) == "f"
    here, there = demangle_worker.demangle_here, demangle_worker.demangle_in_worker
    assert here(unfolding(12)) == there(unfolding(12), apart), "demangling in both processes agrees"
    began = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    for levels in (30, 36):
        assert demangle(unfolding(levels)) == unfolding(levels)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - began < 5.0
    name = CXX[-1][0]
    assert there(name, apart) == here(name), "the worker goes on with the next name"
    apart.close()


NESTED = {
    "pointers": ("_Z1f", "P", "i", ""),
    "templates": ("_Z1f", "1AI", "i", "E"),
    "functions": ("_Z1f", "PF", "v", "E"),
    "expressions": ("_Z1fIX", "ng", "Li1EEEvv", ""),
    "conversions": ("_ZN1Acv", "P", "iEv", ""),
    "references": ("_RINvC1a1f", "R", "hE", ""),
}


@pytest.mark.parametrize("kind", NESTED)
@pytest.mark.parametrize("size", [990, 16_000])
def test_a_nested_name_does_not_overflow_the_stack(kind: str, size: int) -> None:
    begin, opening, middle, closing = NESTED[kind]
    levels = (size - len(begin + middle)) // len(opening + closing)
    name = begin + opening * levels + middle + closing * levels
    program = (
        "import sys, threading; from locktop.collector.symbols.demangle import demangle;"
        "threading.stack_size(512 << 10);"
        "t = threading.Thread(target=demangle, args=[sys.argv[1]]); t.start(); t.join()"
    )
    subprocess.run([sys.executable, "-c", program, name], check=True)


def test_the_worker_ends_with_its_parent() -> None:
    """Any end of the parent closes the input of the worker."""
    program = (
        "import os, sys; from locktop.collector.symbols import demangle_worker as d;"
        "d.demangle_in_worker('_Z1fv', d.worker); print(d.worker.pid, flush=True); os._exit(0)"
    )
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True)
    pid = int(done.stdout)
    with contextlib.suppress(OSError):
        descriptor = os.pidfd_open(pid)
        assert select.select([descriptor], [], [], 60)[0], "the worker is still running"
        os.close(descriptor)


@pytest.mark.parametrize(
    ("whole", "name"),
    [
        ("int f<int>(int) requires C<int>", "f<int>"),
        ("void f<int>() const requires (C<int> && D<(3 > 2)>)", "f<int>"),
        ("std::enable_if<(3>2), int>::type f<int>(int)", "f<int>"),
        ("unsigned long app::hash<int>(int)", "app::hash<int>"),
        ("int (&f<int>(int)) [3]", "int (&f<int>(int)) [3]"),
        ("f(int)::g(int)", "f(int)::g"),
        ("f(", "f("),
        ("f)", "f)"),
        ("()", "()"),
        ("a<b(c)", "a<b"),
    ],
)
def test_parameters_are_removed_from_names(whole: str, name: str) -> None:
    assert strip_parameters(whole) == name


@pytest.mark.parametrize(
    "text",
    ["(" * 9000, ")" * 9000, "()" * 5000, "f (*" * 3000 + ")(int)" * 3000, " const" * 3000,
     "a for " * 3000, ") requires " * 3000, "operator " * 2000, "f(" + "<" * 9000 + ")"],
    ids=lambda text: text[:12],
)  # fmt: skip
def test_removing_parameters_takes_linear_time(text: str) -> None:
    """Quadratic time would be seconds here; linear time is milliseconds."""
    began = time.thread_time()
    strip_parameters(text)
    assert time.thread_time() - began < 1.0


@pytest.mark.parametrize(
    "text",
    [".cold" * 3000 + "x", ".0" * 8000, "." * 16000, "_ZN" * 5000],
    ids=lambda text: text[:12],
)
def test_no_symbol_takes_long_to_demangle(text: str) -> None:
    began = time.thread_time()
    assert demangle(text) == text
    assert time.thread_time() - began < 1.0
