"""The mounts that a process sees (proc_pid_mountinfo(5))."""

from __future__ import annotations

from locktop.collector.linux import procfs

_SEPARATOR = b"-"


def file_system(pid: int, mount: int) -> str:
    """Return the type of the file system of a mount, as "ext4" or "fuse.sshfs"; "" if not known.

    Args:
        pid: a process that sees the mount.
        mount: its number, which fdinfo calls ``mnt_id``.
    """
    try:
        lines = procfs.read(f"{procfs.shared_directory(pid)}/mountinfo").splitlines()
    except OSError:
        return ""
    for line in lines:
        fields = line.split()
        if fields and fields[0] == b"%d" % mount and _SEPARATOR in fields:
            return fields[fields.index(_SEPARATOR) + 1].decode("ascii", "replace")
    return ""
