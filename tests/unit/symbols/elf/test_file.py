"""Every kind of ELF file that programs come as: built here by gcc, binutils and xz, then read."""

from __future__ import annotations

import contextlib
import gc
import lzma
import mmap
import os
import shutil
import struct
import subprocess
import tracemalloc
import zlib
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from locktop.collector.linux import procfs
from locktop.collector.symbols import modules
from locktop.collector.symbols.dwarf.reader import Dwarf
from locktop.collector.symbols.elf import debug_files
from locktop.collector.symbols.elf.bounded_file import InMemory
from locktop.collector.symbols.elf.compression import unpack_xz
from locktop.collector.symbols.elf.file import ElfFile
from locktop.collector.symbols.memory_map import Mapping, parse
from locktop.collector.symbols.modules import Module
from locktop.collector.symbols.safe_open import OpenFile, open_regular

SOURCE = """\
#include <stdio.h>
int g_figures[20] = {1};
static __attribute__((noinline)) int in_a_file_of_its_own(int n)
{
    return n + puts("here");
}
int everybodys_function(int n)
{
    return in_a_file_of_its_own(n) + 1;
}
int main(void)
{
    return everybodys_function(1) + g_figures[2];
}
"""
LOCAL, GLOBAL = "in_a_file_of_its_own", "everybodys_function"
LINE_OF_LOCAL = 4


def run(*command: str | Path, cwd: Path) -> str:
    """Run a tool and return what it says."""
    done = subprocess.run([str(c) for c in command], cwd=cwd, check=True, capture_output=True)
    return done.stdout.decode()


def need(program: str) -> None:
    """Skip where a tool is missing, but not where all must be there."""
    if shutil.which(program) is None:
        assert not os.environ.get("CI"), f"{program} is missing"
        pytest.skip(f"{program} is missing")


class Built:
    """A program with DWARF, and where its functions lie as `nm` tells."""

    def __init__(self, directory: Path, *flags: str) -> None:
        self.directory = directory
        self.path = directory / "program"
        (directory / "program.c").write_text(SOURCE)
        self.run("cc", "-O1", "-g", *flags, "-o", self.path, "program.c")
        told = (line.split() for line in self.run("nm", self.path).splitlines())
        self.addresses = {words[2]: int(words[0], 16) for words in told if len(words) == 3}

    def run(self, *command: str | Path) -> str:
        return run(*command, cwd=self.directory)

    def separate(self, debug: Path, *, strip: str = "--strip-all") -> None:
        """Move symbols and DWARF to a file of their own."""
        debug.parent.mkdir(parents=True, exist_ok=True)
        self.run("objcopy", "--only-keep-debug", self.path, debug)
        self.run("strip", strip, self.path)

    def module(self, *roots: Path) -> Module:
        return module(self.path, roots)

    @property
    def by_build_id(self) -> Path:
        """Where its debug file belongs, under a root."""
        build_id = elf(self.path).build_id
        return Path(f"usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug")


@pytest.fixture
def built(tmp_path: Path) -> Built:
    return Built(tmp_path)


def opened(path: Path) -> OpenFile:
    file = open_regular(path)
    assert file is not None
    return file


def elf(path: Path) -> ElfFile:
    return ElfFile(opened(path))


def module(path: Path, roots: tuple[Path, ...] = ()) -> Module:
    """The module of a program that lies at ``path`` under a root (else: nothing is found)."""
    first = str(roots[0]) if roots else "/nowhere"
    return Module(opened(path), str(path).removeprefix(first), [str(root) for root in roots])


def name(found: Module, address: int) -> str:
    symbol = found.function(address)
    return symbol.name if symbol else ""


def test_functions_by_name(built: Built) -> None:
    whole = elf(built.path)
    for function in (LOCAL, GLOBAL, "main"):
        assert whole.function_named(function) == built.addresses[function]
    for other in ("g_figures", "puts", GLOBAL[1:], GLOBAL[:-1], ""):  # data, of another file, none
        assert whole.function_named(other) is None
    built.run("strip", built.path)
    assert elf(built.path).function_named(GLOBAL) is None


def test_what_a_whole_program_has(built: Built) -> None:
    whole = built.module()
    for function in (LOCAL, GLOBAL, "main"):
        start = built.addresses[function]
        assert (name(whole, start), name(whole, start + 3)) == (function, function)
        assert name(whole, start - 1) != function
    assert whole.locations(built.addresses[LOCAL])[0][1:] == ("program.c", LINE_OF_LOCAL)
    figures = whole.data(built.addresses["g_figures"] + 79)
    assert figures is not None
    assert (figures.name, figures.size) == ("g_figures", 80)
    behind = whole.data(built.addresses["g_figures"] + 80)
    assert behind is None or behind.name != "g_figures"
    told = built.run("readelf", "-n", built.path)
    assert f"Build ID: {whole.elf.build_id}\n" in told
    assert whole.note == ""


def test_all_functions_of_the_c_library_as_readelf_tells_them() -> None:
    """At the beginning of each, and in its last byte, where aliases and nested ones are many."""
    (path,) = {Path(m.path) for m in parse(procfs.maps(os.getpid())) if "/libc.so" in m.path}
    functions = []
    for line in run("readelf", "-sW", path, cwd=path.parent).splitlines():
        words = line.split()
        if len(words) > 7 and words[3] in ("FUNC", "IFUNC") and words[6] != "UND":
            functions.append((int(words[1], 16), int(words[2], 0), words[7].partition("@")[0]))
    assert len(functions) > 1000
    found = module(path)
    for start, size, symbol in functions[::7]:
        for address in {start, start + max(size, 1) - 1}:
            covering = {n for s, length, n in functions if s <= address < s + max(length, 1)}
            assert name(found, address) in covering, symbol


@pytest.mark.parametrize("where", ["of the target", "ours"])
def test_a_debug_file_by_build_id(built: Built, tmp_path: Path, where: str) -> None:
    root, other = tmp_path, tmp_path / "empty"
    built.separate(root / built.by_build_id)
    assert name(built.module(), built.addresses[LOCAL]) == ""
    roots = (root, other) if where == "of the target" else (other, root)
    found = built.module(*roots)
    assert name(found, built.addresses[LOCAL] + 1) == LOCAL
    assert found.locations(built.addresses[LOCAL])[0][1:] == ("program.c", LINE_OF_LOCAL)
    assert found.data(built.addresses["g_figures"]) is not None


@pytest.mark.parametrize("place", ["", ".debug", "usr/lib/debug/bin"])
@pytest.mark.parametrize("flag", ["-Wl,--build-id=none", "-Wl,--build-id=sha1"])
def test_a_debug_file_by_link(tmp_path: Path, place: str, flag: str) -> None:
    directory = tmp_path / "bin"
    directory.mkdir()
    built = Built(directory, flag)
    debug = (tmp_path if place.startswith("usr") else directory) / place / "program.debug"
    built.separate(debug)
    built.run("objcopy", f"--add-gnu-debuglink={debug}", built.path)
    found = built.module(tmp_path)
    assert name(found, built.addresses[LOCAL]) == LOCAL
    assert found.locations(built.addresses[LOCAL])[0][1:] == ("program.c", LINE_OF_LOCAL)
    if flag.endswith("none"):  # then nothing but the checksum tells builds apart
        debug.write_bytes(debug.read_bytes() + b"x")
        changed = built.module(tmp_path)
        assert name(changed, built.addresses[LOCAL]) == ""
        assert "program.debug is of another build than /bin/program: not used" in changed.note


@pytest.mark.parametrize("link", [False, True])
def test_a_debug_file_of_another_build_is_refused(tmp_path: Path, link: bool) -> None:
    other = Built(tmp_path, "-DOTHER", "-O0")
    debug = tmp_path / "program.debug"
    other.separate(debug)
    built = Built(tmp_path)
    built.run("strip", built.path)
    if link:
        built.run("objcopy", f"--add-gnu-debuglink={debug}", built.path)
    else:
        (tmp_path / built.by_build_id).parent.mkdir(parents=True)
        debug.rename(tmp_path / built.by_build_id)
    found = built.module(tmp_path)
    assert name(found, built.addresses[LOCAL]) == ""
    assert found.note.endswith(" is of another build than /program: not used")


def test_a_link_leads_to_no_other_directory(built: Built, tmp_path: Path) -> None:
    debug = tmp_path / "elsewhere" / "program.debug"
    built.separate(debug)
    built.run("objcopy", f"--add-gnu-debuglink={debug}", built.path)
    data = built.path.read_bytes()
    forged = data.replace(b"program.debug\0", b"../p/x.debug\0\0")
    assert forged != data
    checksum = struct.pack("<I", zlib.crc32(debug.read_bytes()))
    assert checksum in forged
    built.path.write_bytes(forged)
    (tmp_path / "p").mkdir()
    (tmp_path / "d").mkdir()  # else ".." leads nowhere from there
    debug.rename(tmp_path / "p" / "x.debug")
    assert debug_files.find(elf(built.path), "/d/program", [str(tmp_path)]) is None


@pytest.mark.parametrize("link", ["/usr/lib/debug/.dwz/common.debug", "common.debug"])
def test_what_dwz_took_out_of_debug_files(tmp_path: Path, link: str) -> None:
    need("dwz")
    members = "".join(f"long member_{n}; " for n in range(30))
    many = "".join(f"struct s{n} {{ {members} }} v{n};\n" for n in range(60))
    for part in ("one", "two"):
        (tmp_path / part).mkdir()
        (tmp_path / part / "many.h").write_text(many)
    flags = ["-include", "many.h", "-gdwarf-4"]
    first, second = (
        Built(tmp_path / part, *flags, f"-ffile-prefix-map={tmp_path / part}=/source")
        for part in ("one", "two")
    )
    debug = tmp_path / first.by_build_id
    first.separate(debug)
    shared = tmp_path / link.removeprefix("/")
    shared.parent.mkdir(parents=True, exist_ok=True)
    name_in_it = link if link.startswith("/") else os.path.relpath(shared, debug.parent)
    run("dwz", "-m", shared, "-M", name_in_it, debug, second.path, cwd=tmp_path)
    assert b".gnu_debugaltlink" in debug.read_bytes()
    found = first.module(tmp_path)
    assert name(found, first.addresses[LOCAL]) == LOCAL
    assert found.locations(first.addresses[LOCAL])[0][1:] == ("program.c", LINE_OF_LOCAL)
    file = opened(debug)
    supplement = debug_files.supplement(ElfFile(file), file, [str(tmp_path), ""])
    assert supplement is not None
    origin = Dwarf(ElfFile(file), lambda _: "", supplement).find(first.addresses[LOCAL])
    assert origin[-1].function == LOCAL
    shared.unlink()  # not installed: what is not in common can still be had
    assert name(first.module(tmp_path), first.addresses[LOCAL]) == LOCAL
    first.module(tmp_path).locations(first.addresses[LOCAL])


def test_mini_debug_info(built: Built, tmp_path: Path) -> None:
    built.run(
        "objcopy", "-S", "--remove-section=.comment", "--keep-symbol", LOCAL, built.path, "mini"
    )
    (tmp_path / "mini.xz").write_bytes(lzma.compress((tmp_path / "mini").read_bytes()))
    built.run("strip", built.path)
    assert name(built.module(), built.addresses[LOCAL]) == ""
    built.run("objcopy", "--add-section", ".gnu_debugdata=mini.xz", built.path)
    found = built.module()
    assert name(found, built.addresses[LOCAL] + 2) == LOCAL
    assert found.note == ""


@pytest.mark.parametrize("packing", ["zlib", "zlib-gabi", "zlib-gnu", "zstd"])
def test_packed_sections(built: Built, packing: str) -> None:
    debug = built.directory / "packed"
    built.run("objcopy", f"--compress-debug-sections={packing}", built.path, debug)
    packed = {section.name for section in elf(debug).sections}
    assert (".zdebug_info" in packed) == (packing == "zlib-gnu")
    assert elf(debug).content(".debug_line" if packing != "zlib-gnu" else ".zdebug_line") == elf(
        built.path
    ).content(".debug_line")
    assert module(debug).locations(built.addresses[LOCAL])[0][1:] == ("program.c", LINE_OF_LOCAL)


@pytest.mark.parametrize("packing", ["zlib", "zlib-gnu", "zstd"])
def test_damaged_packed_sections(built: Built, packing: str) -> None:
    debug = built.directory / "packed"
    built.run("objcopy", f"--compress-debug-sections={packing}", built.path, debug)
    name = ".zdebug_str" if packing == "zlib-gnu" else ".debug_str"
    section = elf(debug).section(name)
    assert section is not None
    data = bytearray(debug.read_bytes())
    data[section.offset + 28 : section.offset + section.size] = b"\xff" * (section.size - 28)
    debug.write_bytes(data)
    with pytest.raises(ValueError, match=r"damaged|bytes instead of"):
        elf(debug).content(name)


def test_an_unknown_packing_gives_no_lines_and_no_error(built: Built) -> None:
    built.run("objcopy", "--compress-debug-sections=zlib", built.path)
    found = elf(built.path)
    section = found.section(".debug_info")
    assert section is not None
    data = bytearray(built.path.read_bytes())
    data[section.offset] = 99
    built.path.write_bytes(data)
    with pytest.raises(ValueError, match="unknown method"):
        elf(built.path).content(".debug_info")
    assert built.module().locations(built.addresses[LOCAL]) == ()
    assert name(built.module(), built.addresses[LOCAL]) == LOCAL


def forged(built: Built, section: str, content: bytes, *, packed: bool) -> ElfFile:
    """The program with a further section, which may say of itself that it is packed."""
    (built.directory / "content").write_bytes(content)
    built.run("objcopy", "--add-section", f"{section}=content", built.path, "forged")
    data = bytearray((built.directory / "forged").read_bytes())
    if packed:
        titles = [found.name for found in ElfFile(InMemory(bytes(data))).sections]
        table = struct.unpack_from("<Q", data, 40)[0]
        at = table + 64 * titles.index(section) + 8
        data[at : at + 8] = struct.pack("<Q", 0x800)
    return ElfFile(InMemory(bytes(data)))


def peak(work: Callable[[], object]) -> int:
    """Return the most bytes that Python objects took meanwhile."""
    tracemalloc.start()
    try:
        with contextlib.suppress(ValueError):
            work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_bombs_do_not_burst(built: Built) -> None:
    """Sections that are much larger than they say, or say that they are huge."""
    nothing = bytes(70 << 20)
    zlibbed, zstdded = zlib.compress(nothing, 1), zstandard.compress(nothing)
    old = b"ZLIB" + struct.pack(">Q", 10)
    kinds = [
        (".debug_bomb", struct.pack("<IIQQ", 1, 0, 10, 1) + zlibbed, True),
        (".debug_bomb", struct.pack("<IIQQ", 2, 0, 10, 1) + zstdded, True),
        (".zdebug_bomb", old + zlibbed, False),
    ]
    for section, content, packed in kinds:
        bomb = forged(built, section, content, packed=packed)
        assert peak(lambda bomb=bomb, section=section: bomb.content(section)) < 8 << 20
    for size in (1 << 34, 1 << 63):
        huge = [
            (".debug_bomb", struct.pack("<IIQQ", 1, 0, size, 1) + zlibbed, True),
            (".debug_bomb", struct.pack("<IIQQ", 2, 0, size, 1) + zstdded, True),
            (".zdebug_bomb", b"ZLIB" + struct.pack(">Q", size) + zlibbed, False),
        ]
        for section, content, packed in huge:
            bomb = forged(built, section, content, packed=packed)
            with pytest.raises(ValueError, match="larger than is sane"):
                bomb.content(section)
    mini = forged(built, ".gnu_debugdata", lzma.compress(nothing, preset=0), packed=False)
    with pytest.raises(ValueError, match="too large"):
        _ = mini.mini
    assert peak(lambda: mini.mini) < 140 << 20


def test_a_sparse_file_is_not_read_whole(built: Built) -> None:
    """A section of 400 GB, of a file that says that it has them."""
    section = elf(built.path).section(".debug_str")
    assert section is not None
    data = bytearray(built.path.read_bytes())
    at = data.find(struct.pack("<QQ", section.offset, section.size))
    data[at + 8 : at + 16] = struct.pack("<Q", 400 << 30)
    built.path.write_bytes(data)
    os.truncate(built.path, 500 << 30)
    assert peak(lambda: elf(built.path).content(".debug_str")) < 8 << 20
    with pytest.raises(ValueError, match="larger than is sane"):
        elf(built.path).content(".debug_str")


def test_a_symbol_table_that_nobody_could_have_written_is_not_sorted(built: Built) -> None:
    """Read, its columns would take more memory than many a machine has."""
    section = elf(built.path).section(".symtab")
    assert section is not None
    data = bytearray(built.path.read_bytes())
    at = data.find(struct.pack("<QQ", section.offset, section.size))
    data[at + 8 : at + 16] = struct.pack("<Q", 400 << 20)
    built.path.write_bytes(data)
    os.truncate(built.path, 1 << 30)
    forged = built.module()
    assert peak(lambda: forged.function(built.addresses[LOCAL])) < 8 << 20
    assert forged.note.endswith(".symtab is larger than is sane")


@pytest.mark.parametrize("moved", [0x10_0000, 0x3000_0000])
def test_a_program_that_prelink_moved(built: Built, moved: int) -> None:
    """Its addresses are others than those in its debug file."""
    debug = built.directory / built.by_build_id
    built.separate(debug)
    built.run("objcopy", f"--change-addresses={moved:#x}", built.path)
    found = built.module(built.directory)
    assert min(segment.address for segment in found.elf.segments) == moved
    symbol = found.function(built.addresses[LOCAL] + moved + 1)
    assert symbol is not None
    assert (symbol.name, symbol.address) == (LOCAL, built.addresses[LOCAL] + moved)
    assert found.locations(built.addresses[LOCAL] + moved)[0][1:] == ("program.c", LINE_OF_LOCAL)
    assert found.data(built.addresses["g_figures"] + moved) is not None
    assert name(found, built.addresses[LOCAL]) == ""


@pytest.mark.parametrize("flag", ["-pie", "-no-pie", "-static", "-Wl,-Ttext-segment=0x70000000"])
def test_each_way_to_link(tmp_path: Path, flag: str) -> None:
    built = Built(tmp_path, flag)
    found = built.module()
    assert name(found, built.addresses[LOCAL]) == LOCAL
    first = found.elf.segments[0]
    base = 0x5555_0000_0000 if flag == "-pie" else first.address
    assert found.elf.bias(base, 0) == base - first.address


def test_a_segment_may_begin_within_a_page(tmp_path: Path) -> None:
    (tmp_path / "a.s").write_text(".globl _start\n_start: nop\n")
    run("as", "-o", "a.o", "a.s", cwd=tmp_path)
    run("ld", "-N", "-o", "a", "a.o", cwd=tmp_path)
    found = elf(tmp_path / "a")
    (segment,) = found.segments
    into = segment.offset % mmap.PAGESIZE
    assert into, "else the linker has learned better"
    assert found.bias(segment.address - into, segment.offset - into) == 0


def test_symbol_tables_of_32_bits(tmp_path: Path) -> None:
    (tmp_path / "a.s").write_text(
        ".globl first\n.type first,@function\n.text\nnop\nfirst: nop\nnop\n.size first,.-first\n"
        ".data\n.type word,@object\nword: .long 7\n.size word,4\n"
    )
    run("as", "--32", "-o", "a.o", "a.s", cwd=tmp_path)
    run("ld", "-m", "elf_i386", "-e", "first", "-o", "a", "a.o", cwd=tmp_path)
    found = module(tmp_path / "a")
    told = dict(
        line.split()[::2] for line in run("nm", "--radix=d", "a", cwd=tmp_path).splitlines()
    )
    addresses = {symbol: int(address) for address, symbol in told.items()}
    assert name(found, addresses["first"] + 1) == "first"
    assert name(found, addresses["first"] + 2) == ""
    word = found.data(addresses["word"])
    assert word is not None
    assert (word.name, word.size) == ("word", 4)


def test_a_function_without_a_size_ends_with_its_section(tmp_path: Path) -> None:
    """What lies in another section (.plt behind .init) is not its."""
    (tmp_path / "a.s").write_text(
        '.section .one,"ax",@progbits\n.type bare,@function\nbare: nop\nnop\n'
        '.section .two,"ax",@progbits\nnop\nnop\n.text\n.globl _start\n_start: nop\n'
    )
    run("as", "-o", "a.o", "a.s", cwd=tmp_path)
    run("ld", "-o", "a", "a.o", cwd=tmp_path)
    found = module(tmp_path / "a")
    one, two = found.elf.section(".one"), found.elf.section(".two")
    assert one is not None
    assert two is not None
    assert [name(found, one.address + n) for n in (0, 1, 2)] == ["bare", "bare", ""]
    assert name(found, two.address) == ""


def test_the_outer_function_is_found_behind_an_inner_one(tmp_path: Path) -> None:
    (tmp_path / "a.s").write_text(
        ".globl _start\n.text\n.type outer,@function\n.type inner,@function\n_start:\nouter: nop\n"
        "inner: nop\n.size inner,1\nnop\nnop\n.size outer,4\n"
    )
    run("as", "-o", "a.o", "a.s", cwd=tmp_path)
    run("ld", "-o", "a", "a.o", cwd=tmp_path)
    found = module(tmp_path / "a")
    start = found.elf.segments[-1].address
    text = found.elf.section(".text")
    assert text is not None
    start = text.address
    names = [name(found, start + n) for n in range(5)]
    assert names == ["outer", "inner", "outer", "outer", ""]


def test_names_lose_the_version_of_a_shared_library(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(
        'int put_new(void) { return 1; }\n__asm__(".symver put_new,put@@V1");\n'
        'int put_old(void) { return 2; }\n__asm__(".symver put_old,put@V0");\n'
    )
    (tmp_path / "map").write_text("V0 { local: *; }; V1 { global: put; };\n")
    flags = ["-fPIC", "-shared", "-Wl,--version-script=map"]
    run("cc", *flags, "-o", "a.so", "a.c", cwd=tmp_path)
    told = run("nm", "a.so", cwd=tmp_path)
    assert "put@@V1" in told
    found = module(tmp_path / "a.so")
    for line in told.splitlines():
        address, kind, *_ = line.split()
        if kind == "T":
            assert "@" not in name(found, int(address, 16))


def test_what_is_no_regular_file_is_never_opened(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    (tmp_path / "link").symlink_to(fifo)
    for path in (fifo, tmp_path / "link", tmp_path, Path("/dev/zero"), tmp_path / "none", "a\0b"):
        assert open_regular(path) is None


def test_few_files_are_kept_open(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modules, "_MAX_MODULES", 5)
    monkeypatch.setattr(modules, "_modules", OrderedDict())
    built.separate(built.directory / ".debug" / "program.debug")
    built.run("objcopy", "--add-gnu-debuglink=.debug/program.debug", built.path)

    def opened_files() -> int:
        return len(os.listdir("/proc/self/fd"))

    gc.collect()
    gc.disable()  # it may come much later than the last descriptor
    before = opened_files()
    for number in range(20):
        path = built.directory / f"program{number}"
        shutil.copy(built.path, path)
        about = path.stat()
        device = f"{os.major(about.st_dev):02x}:{os.minor(about.st_dev):02x}"
        mapping = Mapping(0, 4096, True, 0, device, about.st_ino, str(path), False)
        found = modules.load(os.getpid(), mapping)
        assert name(found, built.addresses[LOCAL]) == LOCAL
        assert found.locations(built.addresses[LOCAL])
    del found
    kept = opened_files() - before
    gc.enable()
    assert 5 <= kept <= 10


def test_what_is_damaged_is_read_once(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bomb of mini debug info takes half a second until it is refused."""
    found = forged(built, ".gnu_debugdata", lzma.compress(bytes(65 << 20), preset=0), packed=False)
    (built.directory / "bomb").write_bytes((built.directory / "forged").read_bytes())
    tries: list[bytes] = []
    monkeypatch.setattr(
        "locktop.collector.symbols.elf.file.unpack_xz",
        lambda data, most: tries.append(data) or unpack_xz(data, most),
    )
    bomb = module(built.directory / "bomb")
    nowhere = max(section.address + section.size for section in found.sections)
    for offset in range(5):
        assert bomb.function(nowhere + offset) is None
    assert len(tries) == 1
    assert bomb.note.endswith("too large, or cut off")
