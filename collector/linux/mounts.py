"""The mounts that a process sees (proc_pid_mountinfo(5))."""

from __future__ import annotations

from msgspec import Struct

from locktop.collector.linux import procfs

_DEVICE, _SEPARATOR = 2, b"-"
_MAJOR_SHIFT = 20  # of a device number inside the kernel (include/linux/kdev_t.h)


class Mount(Struct, frozen=True):
    """A mounted file system."""

    type: str = ""  # as "ext4" or "fuse.sshfs"; "" if not known
    device: int = 0  # its number inside the kernel


def mount(pid: int, number: int) -> Mount:
    """Return a mount by its number; one without a type if it is not known.

    Args:
        pid: a process that sees the mount.
        number: what fdinfo calls ``mnt_id``.
    """
    try:
        lines = procfs.read(f"{procfs.shared_directory(pid)}/mountinfo").splitlines()
    except OSError:
        return Mount()
    for line in lines:
        fields = line.split()
        if fields and fields[0] == b"%d" % number and _SEPARATOR in fields:
            major, _, minor = fields[_DEVICE].partition(b":")
            return Mount(
                type=fields[fields.index(_SEPARATOR) + 1].decode("ascii", "replace"),
                device=int(major) << _MAJOR_SHIFT | int(minor),
            )
    return Mount()
