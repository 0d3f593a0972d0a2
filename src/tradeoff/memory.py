"""Find out how much memory may be used, and refuse what would not fit."""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from pathlib import Path

from tradeoff.errors import ArgumentError, TooLargeError

GIB = 1 << 30
# For each version of cgroups: where it is mounted, its limit, its usage, and the part of the usage that can be reclaimed.
CGROUPS = {
    "unified": (("", "unified"), "memory.max", "memory.current", "inactive_file"),
    "memory": (("memory",), "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}


def memory_limit() -> int:
    """Return how many bytes one computation may use.

    That is ``TRADEOFF_MEMORY`` (in GiB) if it is set, otherwise nine tenths of what is available now: on the machine, in
    this process's cgroup and those above it (containers), and under its limit on address space (``ulimit -v``).
    """
    setting = os.environ.get("TRADEOFF_MEMORY")
    if setting is None:
        return int(0.9 * max(0, _available()))
    try:
        limit = float(setting)
    except ValueError:
        limit = -1.0
    if not limit > 0:
        raise ArgumentError(f"TRADEOFF_MEMORY is {setting!r}; it must be a positive number of GiB, such as 4")
    return int(limit * GIB)


def _available() -> int:
    """Return the bytes that are available without swapping."""
    found = [_machine_room()]
    found += [room for files in limited_cgroups() if (room := _cgroup_room(*files)) is not None]
    space = address_space_limit()
    if space is not None:
        found.append(space - _address_space())
    return min(found)


def _machine_room() -> int:
    """Return the bytes available on the machine; 4 GiB if the system does not tell."""
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, ValueError, OSError):
        return 4 * GIB


@cache  # called often, and limits seldom change
def limited_cgroups(
    membership: Path = Path("/proc/self/cgroup"), mount: Path = Path("/sys/fs/cgroup")
) -> list[tuple[int, Path, str, str]]:
    """Return the limit, folder, usage file and reclaimable entry of every cgroup that limits this process."""
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        version = "memory" if "memory" in controllers.split(",") else "unified" if not controllers else ""
        if not version:
            continue
        mounts, limit, usage, reclaimable = CGROUPS[version]
        # The group itself and those above it; in a container, the path may exist only on the host.
        parts = [part for part in path.split("/") if part]
        for at in mounts:
            for depth in range(len(parts), -1, -1):
                folder = mount.joinpath(at, *parts[:depth])
                most = _number_in(folder / limit)
                if most is not None and most < 1 << 60:  # version 1 writes "unlimited" as a huge number
                    found.append((most, folder, usage, reclaimable))
    return found


def _cgroup_room(limit: int, folder: Path, usage: str, reclaimable: str) -> int | None:
    """Return the bytes left in a cgroup; reclaimable file caches do not count as used."""
    used = _number_in(folder / usage)
    if used is None:
        return None
    try:
        entries = [line.split() for line in (folder / "memory.stat").read_text().splitlines()]
    except OSError:
        entries = []
    return limit - used + sum(int(entry[1]) for entry in entries if entry[0] == reclaimable)


def _number_in(path: Path) -> int | None:
    """Return the number in a file; None if there is no file, or it says "max"."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def address_space_limit() -> int | None:
    """Return how many bytes of address space this process may have (``ulimit -v``); None if there is no limit."""
    try:
        resource = import_module("resource")
    except ImportError:  # not a Unix system
        return None
    soft: int = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if soft == resource.RLIM_INFINITY else soft


def _address_space() -> int:
    """Return how many bytes of address space this process uses now."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def resident_memory() -> int:
    """Return how many bytes of memory this process uses now; 0 if the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def check_fits(size: int, what: str) -> None:
    """Raise a TooLargeError if ``what`` needs more bytes than may be used."""
    limit = memory_limit()
    if size > limit:
        raise TooLargeError(
            f"{what} would need about {size / GIB:.3g} GiB, but only {limit / GIB:.3g} GiB may be used; make the model "
            "smaller (fewer states, actions or steps), or allow more with the environment variable "
            "TRADEOFF_MEMORY (in GiB)"
        )
