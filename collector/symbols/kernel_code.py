"""Names for code that the kernel put into a process, and for returns from signal handlers.

The vdso is a whole ELF file in the memory of the process, with a table of its functions. The C
library returns from a signal handler by a few instructions without a symbol.
"""

from __future__ import annotations

from locktop.collector.linux import process_memory
from locktop.collector.symbols.elf.bounded_file import InMemory
from locktop.collector.symbols.elf.file import ElfFile
from locktop.collector.symbols.memory_map import Mapping

SIGNAL_FRAME = "<signal handler called>"
#: mov $15, %rax; syscall: glibc's __restore_rt (sysdeps/unix/sysv/linux/x86_64/libc_sigaction.c).
_RESTORE = bytes.fromhex("48c7c00f0000000f05")
_PREFIX = "__vdso_"
_MAX_VDSO = 1 << 20  # bytes, far more than any kernel has


class VdsoNames:
    """Names the functions of a process's vdso."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._elf: ElfFile | None = None

    def function(self, mapping: Mapping, address: int) -> str:
        """Return the function at an address, as the C library calls it; "" if that is not known.

        Args:
            mapping: the vdso in the process.
            address: an address in it.
        """
        try:
            if self._elf is None:
                size = min(mapping.end - mapping.start, _MAX_VDSO)
                data = process_memory.read(self._pid, mapping.start, size)
                self._elf = ElfFile(InMemory(data))
            bias, functions = self._elf.bias(mapping.start, 0), self._elf.functions
        except (OSError, ValueError):
            return ""
        symbol = functions.find(address - bias) if functions and bias is not None else None
        return symbol.name.removeprefix(_PREFIX) if symbol is not None else ""


def returns_from_handler(elf: ElfFile, address: int) -> bool:
    """Return whether a function that returns to a link-time address is a signal handler."""
    try:
        return elf.loaded_bytes(address, len(_RESTORE)) == _RESTORE
    except ValueError:
        return False
