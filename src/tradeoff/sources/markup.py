"""Check XML before it is parsed: some versions of expat take quadratic time for one long tag or comment."""

from __future__ import annotations

import re
from typing import BinaryIO

from tradeoff.errors import ProblemError

BLOCK = 1 << 20
LONGEST = 1 << 20  # bytes in a tag, a text, a comment or an instruction
# The only parts of a document in which "<" may stand for itself, by how they begin and end.
ENDS = {b"<!--": b"-->", b"<?": b"?>", b"<![CDATA[": b"]]>"}
_OPENING = re.compile(rb"<!--|<\?|<!\[CDATA\[")
KEPT = max(map(len, ENDS)) - 1  # bytes at the end of a block that may begin a marker continued in the next one


def check_markup(file: BinaryIO, source: str) -> None:
    """Raise a ProblemError if an XML document has a part that is too long to parse, or is not UTF-8."""
    rest, ending, length = b"", b"", 0  # end of the last block; what ends the current part; length of that part
    while block := file.read(BLOCK):
        if b"\0" in block:
            raise ProblemError(f"{source}: it is not UTF-8; save it in that encoding")
        data, at = rest + block, 0
        while True:
            if ending:
                end = data.find(ending, at)
                if end < 0:
                    length += len(data) - at
                    break
                ending, length, at = b"", 0, end
            found = _OPENING.search(data, at)
            if found is None:
                last = data.rfind(b"<", at)
                length = length + len(data) - at if last < 0 else len(data) - last
                break
            ending, length, at = ENDS[found.group()], 0, found.end()
        if length > LONGEST:
            raise ProblemError(
                f"{source}: a single tag, text or comment in it has more than {LONGEST >> 20} MB; is it the right file?"
            )
        rest = data[max(at if ending else 0, len(data) - KEPT) :]  # do not see this part's opening again


def is_markup(beginning: bytes) -> bool:
    """Return whether an XML parser would read on after these first bytes of a file."""
    stripped = beginning.removeprefix(b"\xef\xbb\xbf").lstrip()
    return not stripped or stripped.startswith((b"<", b"\0<", b"\xff\xfe", b"\xfe\xff"))
