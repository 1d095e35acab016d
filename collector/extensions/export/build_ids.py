"""The build ids of the files that a process has mapped, for viewers that fetch symbols by them."""

from __future__ import annotations

from pathlib import Path

from locktop.collector.linux import procfs
from locktop.collector.symbols import memory_map
from locktop.collector.symbols.elf.file import ElfFile
from locktop.collector.symbols.mapped_file import NotMapped, open_mapped

#: Files of one process that are opened.
_MAX_FILES = 1000


def build_ids(pid: int) -> dict[str, str]:
    """Return the build ids, in hex digits, by the base names of the mapped files.

    A file without a build id, or one that cannot be opened any more, is left out.
    """
    try:
        data = Path(f"{procfs.shared_directory(pid)}/maps").read_bytes()
    except OSError:
        return {}
    mappings = {
        mapping.file: mapping
        for mapping in memory_map.parse(data)
        if mapping.executable and mapping.is_code_of_a_file
    }
    ids = {}
    for mapping in list(mappings.values())[:_MAX_FILES]:
        try:
            build_id = ElfFile(open_mapped(pid, mapping)).build_id
        except (NotMapped, ValueError, OSError):
            continue
        if build_id:
            ids[mapping.path.rpartition("/")[2]] = build_id
    return ids
