"""The archive of a UMB file: a tar file, perhaps compressed, whose members are arrays.

Everything is read in memory, nothing is unpacked to disk, and every stated size is checked before it is used.
"""

from __future__ import annotations

import gzip
import io
import lzma
import tarfile
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradeoff.errors import ProblemError
from tradeoff.mdp.layer import Int
from tradeoff.memory import GIB, memory_limit
from tradeoff.model import Vector
from tradeoff.sources.messages import shortened
from tradeoff_checkers.explicit_models import REFUSED

# A model's arrays do not compress very well: a file that unpacks to far more than its size is malicious.
SURELY_QUICK = 256 << 20
MOST_PACKED = 200
MOST_MEMBERS = 10_000
LARGEST_HEADER = 16 << 10  # bytes; a member's header holds its name and little else
NUMBERS = {"double": "f8", "int": "i", "uint": "u"}
# The exceptions that reading a damaged or malicious file may raise.
DAMAGES = (tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, ValueError, LookupError, ArithmeticError, OSError)


class _Headers(io.BytesIO):
    """An archive of which only the headers are read, in order and in small pieces."""

    def read(self, size: int | None = -1, /) -> bytes:
        """Return the next bytes; refuse a header that claims to be longer than any real one."""
        if size is None or not 0 <= size <= LARGEST_HEADER:
            raise tarfile.ReadError(f"a header of {size} bytes")
        return super().read(size)


class Archive:
    """The members of a tar file in memory, as arrays."""

    def __init__(self, path: Path) -> None:
        self.data = _unpacked(path)
        self.places: dict[str, tuple[int, int]] = {}
        try:
            self._find_members()
        except ProblemError:
            raise
        except DAMAGES as error:
            raise ProblemError(f"it is not a UMB file, or it is damaged: {shortened(str(error))[1:-1]}") from None

    def _find_members(self) -> None:
        with tarfile.open(fileobj=_Headers(self.data), mode="r:") as archive:
            for found, member in enumerate(archive):
                name = member.name.removeprefix("./").rstrip("/")
                if found >= MOST_MEMBERS:
                    raise ProblemError(f"it has more than {MOST_MEMBERS:,} members; is it a UMB file?")
                if member.isdir():
                    continue
                if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or member.issparse():
                    raise ProblemError(f"its member {shortened(name)} is a link or a device, which no model has")
                if name.startswith("/") or ".." in name.split("/") or name in self.places:
                    raise ProblemError(
                        f"its member {shortened(name)} leads elsewhere or is there twice; is it damaged?"
                    )
                if not 0 <= member.size <= len(self.data) - member.offset_data:
                    raise ProblemError(
                        f"its member {shortened(name)} claims to have {member.size:,} bytes, but the file ends before that; "
                        "is it cut off?"
                    )
                self.places[name] = (member.offset_data, member.size)

    def __contains__(self, name: str) -> bool:
        return name in self.places

    def raw(self, name: str) -> NDArray[np.uint8]:
        """Return the bytes of a member."""
        if name not in self.places:
            raise ProblemError(f"its member {shortened(name)} is missing; is the file complete?")
        offset, size = self.places[name]
        return np.frombuffer(self.data, dtype=np.uint8, count=size, offset=offset)

    def array(self, name: str, kind: str, count: int) -> NDArray[Any]:
        """Return a member as ``count`` little-endian numbers."""
        raw, dtype = self.raw(name), np.dtype("<" + kind)
        if len(raw) != count * dtype.itemsize:
            raise ProblemError(
                f"{name} has {len(raw):,} bytes, but {count:,} entries of {dtype.itemsize} bytes are needed"
            )
        return raw.view(dtype)

    def bits(self, name: str, count: int) -> NDArray[np.uint8]:
        """Return a member with one bit for each of ``count`` entries, without unpacking the bits."""
        raw = self.raw(name)
        if len(raw) not in (-(-count // 8), 8 * -(-count // 64)):
            raise ProblemError(f"{name} has {len(raw):,} bytes, but one bit for each of {count:,} entries is needed")
        return raw

    def texts(self, folder: str, count: int) -> list[str]:
        """Return the strings of a folder, which stores one long string and where each part begins."""
        raw = self.raw(f"{folder}/strings.bin").tobytes()
        cuts = self.pointers(f"{folder}/string-mapping.bin", count, len(raw)).tolist()
        try:
            return [raw[begin:end].decode() for begin, end in pairwise(cuts)]
        except UnicodeDecodeError as error:
            raise ProblemError(f"{folder}/strings.bin is not text: {error.reason}") from None

    def pointers(self, name: str, count: int, end: int) -> Int:
        """Return where each of ``count`` groups begins, after checking that the numbers increase from 0 to the end."""
        found = self.array(name, "u8", count + 1)
        if found[0] != 0 or found[-1] != end or np.any(found[1:] < found[:-1]):
            raise ProblemError(f"{name} does not increase from 0 to {end:,}; is it damaged?")
        return found.astype(np.int64)

    def numbers(self, name: str, kind: object, count: int) -> Vector:
        """Return a member as real numbers, whichever of the format's number types it uses."""
        entry = kind if isinstance(kind, dict) else {}
        what, size = entry.get("type"), entry.get("size")
        if what == "rational":
            return self._fractions(name, 128 if size is None else size, count)
        if isinstance(what, str) and what.endswith("-interval"):
            raise ProblemError(f"{name} holds intervals: {REFUSED['interval']}")
        size = 64 if size is None else size
        letter = NUMBERS.get(what) if isinstance(what, str) else None
        fits = isinstance(size, int) and size in ((64,) if what == "double" else (8, 16, 32, 64))
        if letter is None or not fits:
            raise ProblemError(f"{name} has the type {shortened(kind)}, which is not a supported kind of number")
        return self.array(name, letter if what == "double" else f"{letter}{size // 8}", count).astype(np.float64)

    def _fractions(self, name: str, size: object, count: int) -> Vector:
        """Return exact fractions, rounded: each has a signed numerator and an unsigned denominator of equal size."""
        if not isinstance(size, int) or size <= 0 or size % 16:
            raise ProblemError(f"{name} has fractions of {shortened(size)} bits, which cannot be read")
        width, raw = size // 8, self.raw(name)
        if len(raw) != count * width:
            raise ProblemError(f"{name} has {len(raw):,} bytes, but {count:,} fractions of {width} bytes are needed")
        different, at = np.unique(raw.view(np.dtype((np.void, width))), return_inverse=True)
        values = np.empty(len(different))
        for i, item in enumerate(map(bytes, different)):
            upper = int.from_bytes(item[: width // 2], "little", signed=True)
            lower = int.from_bytes(item[width // 2 :], "little")
            try:
                values[i] = upper / lower
            except ArithmeticError:
                raise ProblemError(f"{name} holds the fraction {shortened(upper)}/{shortened(lower)}") from None
        rounded: Vector = values[at.ravel()]
        return rounded


def _unpacked(path: Path) -> bytes:
    """Return the tar file in a possibly compressed file; refuse one that unpacks to more than any model would."""
    packed, room = path.stat().st_size, memory_limit() // 4
    if packed > room:
        raise ProblemError(f"it has {packed / GIB:.3g} GiB, which does not fit into memory")
    with path.open("rb") as file:
        magic = file.read(6)
        file.seek(0)
        if magic[:2] != b"\x1f\x8b" and magic != b"\xfd7zXZ\x00":
            return file.read()
        limit = min(room, max(SURELY_QUICK, MOST_PACKED * packed))
        try:
            with gzip.open(file) if magic[0] == 0x1F else lzma.open(file) as unpacking:
                data = unpacking.read(limit + 1)
        except DAMAGES as error:
            raise ProblemError(f"it cannot be unpacked: {error}; is it cut off?") from None
    if len(data) > limit:
        raise ProblemError(
            f"it would unpack from {packed / 2**20:,.3g} MB to more than {limit / 2**20:,.0f} MB, which "
            f"{'does not fit into memory' if limit == room else 'no model does; is it damaged?'}"
        )
    return data
