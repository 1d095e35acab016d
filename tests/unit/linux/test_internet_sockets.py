"""Which sockets of several network namespaces may be the two ends of a connection."""

from __future__ import annotations

from locktop.collector.linux.internet_sockets import InternetSocket


def ends(address: str, namespaces: tuple[int, int]) -> tuple[InternetSocket, InternetSocket]:
    """Return sockets of two namespaces that have each other's address."""
    names = f"{address}:5000", f"{address}:6000"
    return (
        InternetSocket("tcp", *names, inode=1, namespace=namespaces[0]),
        InternetSocket("tcp", *names[::-1], inode=2, namespace=namespaces[1]),
    )


def test_the_loopback_addresses_of_two_containers_are_not_the_same() -> None:
    for address in ("127.0.0.1", "[::1]"):
        ours, theirs = ends(address, (11, 12))
        assert not ours.may_reach(theirs)
        ours, theirs = ends(address, (11, 11))
        assert ours.may_reach(theirs)


def test_other_addresses_may_reach_another_namespace() -> None:
    ours, theirs = ends("172.17.0.2", (11, 12))
    assert ours.may_reach(theirs)
