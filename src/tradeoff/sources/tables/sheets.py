"""Tables as people keep them: CSV, TSV, Excel workbooks and Parquet files, all read into one ``Sheet``."""

from __future__ import annotations

import re
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, cast

from tradeoff.errors import ArgumentError, ProblemError
from tradeoff.memory import check_fits
from tradeoff.sources.markup import check_markup, is_markup
from tradeoff.sources.messages import listing, option, shortened
from tradeoff.sources.options import library, whole
from tradeoff.sources.progress import report, tracked
from tradeoff.sources.tables.cells import (
    Heading,
    Kind,
    amount,
    complaint,
    heading,
    kind_of,
    looks_grouped,
    plain_numbers,
    text_of,
)
from tradeoff.sources.tables.separated import separated_rows, title_rows
from tradeoff.sources.tables.text import check_width

MOST_ROWS = 1 << 20  # as in Excel
MOST_COLUMNS = 1 << 14
MOST_CELLS = 20_000_000
LARGEST_WORKBOOK = 1 << 30  # unpacked
# Workbooks compress well, but one that unpacks to far more than this is malicious.
SURELY_QUICK = 64 << 20
MOST_PACKED = 100
BYTES_PER_CELL = 100  # that a cell of a Parquet file takes in memory, about
UNNAMED = "unnamed"  # the first column, where it has no head
MANY_ROWS, FEW_ROWS = 1 << 16, 64  # to read at a time
# The same for Parquet files, where a column that repeats one value takes hardly any room.
QUICK_PARQUET = 256 << 20
MOST_REPEATED = 1_000


def choose() -> str:
    """Return how to choose other columns."""
    return f"choose other columns with {option('objectives', 'NAME:min,NAME:max')}"


@dataclass(frozen=True)
class Sheet:
    """The columns of a table, with the location of every cell. Cells of text files are texts; others keep their types."""

    source: str
    headings: list[Heading]
    columns: list[list[object]]
    rows: list[int]  # where each row is in the file
    counted: str  # what ``rows`` counts: lines or rows
    separator: str = ""
    advice: str = ""  # about empty cells
    notes: Sequence[str] = ()  # on how the file was read
    left_out: Mapping[str, str] = field(default_factory=dict)  # columns that were not read, and what they hold
    _plain: dict[int, list[float] | None] = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.rows)

    def location(self, row: int, column: int | None = None) -> str:
        """Return where a row or a cell is, for messages."""
        where = f"{self.source}, {self.counted} {self.rows[row]}"
        return where if column is None else f"{where}, column {shortened(self.headings[column].text)}"

    @cached_property
    def found(self) -> str:
        """The heads of the columns, for messages."""
        return listing((head.text for head in self.headings), 12)

    @cached_property
    def unread(self) -> list[str]:
        """What is said about each column that was left out."""
        return [_held(text, held) for text, held in self.left_out.items()]

    def column(self, name: str) -> int:
        """Return the number of the column with this head, or whose head without unit and direction is this."""
        exact = [[h.text for h in self.headings], [h.name for h in self.headings]]
        loose = [[text.casefold() for text in texts] for texts in exact]
        loose.append([re.sub(r"\s*[(\[].*", "", text) for text in loose[0]])  # 'price' is also 'Price (EUR)'
        for said, wanted in [*((texts, name) for texts in exact), *((texts, name.casefold()) for texts in loose)]:
            if said.count(wanted) > 1:
                raise ArgumentError(f"{self.source} has several columns {name!r}; give the whole text of the head")
            if wanted in said:
                return said.index(wanted)
        for text, held in self.left_out.items():
            if name in (text, heading(text).name):
                raise ProblemError(f"{self.source}: {_held(text, held)}; choose a column of numbers or texts")
        raise ArgumentError(f"{self.source} has no column {shortened(name)}; it has {self.found}")

    def plain(self, column: int, decimal: str | None) -> list[float] | None:
        """Return a column of numbers if all its cells are written plainly."""
        if decimal == ",":
            return None
        if column not in self._plain:
            self._plain[column] = plain_numbers(self.columns[column])
        return self._plain[column]

    def numbers(self, column: int, decimal: str | None) -> list[float]:
        """Return a column of finite numbers, or say which cell is not one and what to do."""
        cells = self.columns[column]
        plain = self.plain(column, decimal)
        found: list[float] = [] if plain is None else plain
        for row, cell in enumerate(cells if plain is None else ()):
            value = amount(cell, decimal)
            if value is None:
                raise ProblemError(
                    f"{self.location(row, column)}: {complaint(cell, decimal)}{self.hint(column, cell)}, or {choose()}"
                )
            found.append(value)
        # Where semicolons separate cells, commas are probably decimal marks, and points may separate thousands.
        if self.separator == ";" and decimal is None:
            pointed = [row for row, cell in enumerate(cells) if isinstance(cell, str) and "." in cell]
            if pointed and all(looks_grouped(cells[row]) for row in pointed):
                raise ProblemError(
                    f"{self.location(pointed[0], column)}: {shortened(cells[pointed[0]])} can be read in several ways where "
                    "semicolons separate cells; say which mark is the decimal one with "
                    f"{option('decimal', '.')} or {option('decimal', ',')}"
                )
        return found

    def hint(self, column: int, cell: object) -> str:
        """Return what may explain why a cell is not a number."""
        match kind_of(cell):
            case Kind.MISSING:
                return self.advice
            case Kind.TEXT if self.headings[column].declared:
                return " (a column with a unit or a direction in its head is one of numbers)"
        return ""

    def texts(self, column: int) -> list[str]:
        """Return a column as texts."""
        return [text_of(cell) for cell in self.columns[column]]


def _held(name: str, held: str) -> str:
    return f"the column {shortened(name)} holds {held[:60]}"


def read_sheet(
    path: Path, *, sheet: object = None, separator: object = None, header: object = None, leave_out: bool = False
) -> Sheet:
    """Return the table in a file: a workbook, a Parquet file, or else a text with separators.

    ``header`` is the line that names the columns; otherwise it is the first that is not a title. Columns of what are
    neither numbers nor texts are refused, or with ``leave_out`` they are only listed.
    """
    suffix = path.suffix.lower()
    is_workbook, is_text = suffix in (".xlsx", ".xlsm"), suffix not in (".xlsx", ".xlsm", ".parquet")
    if sheet is not None and not is_workbook:
        raise ArgumentError(f"{path} is not a workbook, so it has no sheet {shortened(sheet)}; leave sheet out")
    if separator is not None and not is_text:
        raise ArgumentError(f"{path} has no separators; leave separator out")
    head_line = None if header is None else whole("header", header)
    if is_workbook:
        return _workbook(path, None if sheet is None else str(sheet), head_line)
    if suffix in (".xls", ".ods"):
        raise ProblemError(f"{path}: files ending in {suffix!r} are not supported; save it as .xlsx or .csv")
    if not is_text:
        return _parquet(path, leave_out)
    rows, lines, mark, notes = separated_rows(path, separator)
    rows = tracked(_checked(rows, str(path)), f"Reading {path.name}", lines)
    return _sheet(str(path), rows, "line", first=head_line, separator=mark, notes=notes)


def _sheet(
    source: str, rows: Iterable[tuple[int, Sequence[object]]], counted: str, *, first: int | None, notes: Sequence[str] = (),
    **details: Any,
) -> Sheet:  # fmt: skip
    """Return the sheet of numbered rows; one names the columns, titles may stand above it, and all below must be as long."""
    numbered = list(rows)
    if not numbered:
        raise ProblemError(f"{source} is empty; its first {counted} must name the columns")
    said = [number for number, _ in numbered]
    if first is not None and first not in said:
        raise ArgumentError(
            f"{source} has nothing in {counted} {first}; {option('header', 'N')} is the one with the heads"
        )
    begin = title_rows([row for _, row in numbered]) if first is None else said.index(first)
    titles = [text_of(next(cell for cell in row if not _blank(cell))) for _, row in numbered[:begin]]
    found = [f"what stands above the heads is not read: {listing(titles, 3)}"] if titles else []
    (line, head), body = numbered[begin], numbered[begin + 1 :]
    width = len(head)
    for number, row in body:
        check_width(source, number, len(row), width, line, counted)
    columns: list[list[object]] = [list(column) for column in zip(*(row for _, row in body), strict=True)]
    lines = [number for number, _ in body]
    details["notes"] = [*notes, *found]
    return _of_columns(source, head, columns or [[] for _ in head], lines, counted, line, **details)


def _of_columns(
    source: str, first: Sequence[object], columns: list[list[object]], lines: list[int], counted: str, line: int,
    **details: Any,
) -> Sheet:  # fmt: skip
    """Return the sheet of columns; ``first`` is what is in ``line``, which names them."""
    headings = [heading(text_of(cell)) for cell in first]
    if len(columns) > 1 and not headings[0].text and any(kind_of(cell) is not Kind.MISSING for cell in columns[0]):
        headings[0] = heading(UNNAMED)  # as programs write that number or name the rows
    kept = []
    seen: dict[str, int] = {}
    for i, (head, column) in enumerate(zip(headings, columns, strict=True)):
        if not head.text:
            if all(kind_of(cell) is Kind.MISSING for cell in column):
                continue
            raise ProblemError(f"{source}, {counted} {line}: column {i + 1} has no name; give it one, or remove it")
        if head.text in seen:
            raise ProblemError(
                f"{source}, {counted} {line}: columns {seen[head.text] + 1} and {i + 1} are both called "
                f"{shortened(head.text)}; give every column a name of its own"
            )
        seen[head.text] = i
        kept.append(i)
    return Sheet(source, [headings[i] for i in kept], [columns[i] for i in kept], lines, counted, **details)


def _checked(rows: Iterable[tuple[int, Sequence[object]]], source: str) -> Iterator[tuple[int, Sequence[object]]]:
    """Yield the rows; refuse a table that is too large."""
    cells = 0
    for count, (number, row) in enumerate(rows):
        cells += len(row)
        if count > MOST_ROWS or cells > MOST_CELLS or len(row) > MOST_COLUMNS:
            _refuse(source)
        yield number, row


def _refuse(source: str) -> NoReturn:
    raise ProblemError(
        f"{source} is too large; at most {MOST_ROWS:,} rows, {MOST_COLUMNS:,} columns and {MOST_CELLS:,} cells are read: "
        "leave out what would not be chosen"
    )


# --- workbooks -------------------------------------------------------------------------------------------------------


def _workbook(path: Path, name: str | None, first: int | None) -> Sheet:
    openpyxl = library("openpyxl", "excel", "reading a workbook")
    library("defusedxml", "excel", "reading a workbook")
    if not openpyxl.DEFUSEDXML:
        raise ProblemError(f"{path}: workbooks are read with defusedxml only; unset OPENPYXL_DEFUSEDXML")
    _check_workbook(path)
    try:
        with path.open("rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about styles and other extensions
            book = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
            made = book[_sheet_name(path, book, name)]
            made.reset_dimensions()  # the size that a workbook states is not always right
            return _sheet(
                f"{path}, sheet {shortened(made.title)}",
                tracked(_padded(path, made.iter_rows(values_only=True)), f"Reading {path.name}"), "row", first=first,
                advice=" (a formula has no value until a spreadsheet program has saved it)",
            )  # fmt: skip
    except (ProblemError, ArgumentError, MemoryError):
        raise
    except Exception as error:  # a damaged workbook raises whatever its reader stumbles over
        said = shortened(str(error))[1:-1]
        raise ProblemError(f"{path} is not a readable workbook: {said}; save it again, or as CSV") from None


def _check_workbook(path: Path) -> None:
    """Refuse a workbook that would unpack to more than a table needs."""
    packed = max(1, path.stat().st_size)
    try:
        with zipfile.ZipFile(path) as archive:
            total = sum(member.file_size for member in archive.infolist())
            _check_size(path, packed, total)
            for member in archive.infolist():
                with archive.open(member) as file:
                    beginning = file.read(64)
                if is_markup(beginning):
                    with archive.open(member) as file:
                        check_markup(cast(BinaryIO, file), f"{path}: {shortened(member.filename)}")
    except ProblemError:
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError):
        raise ProblemError(f"{path} is not a workbook, or it is damaged; save it again, or as CSV") from None


def _check_size(path: Path, packed: int, total: int) -> None:
    if total > LARGEST_WORKBOOK or (total > SURELY_QUICK and total > MOST_PACKED * packed):
        raise ProblemError(
            f"{path} would unpack from {packed / 2**20:,.3g} MB to {total / 2**20:,.0f} MB, which is too large for a "
            "table; save the sheet as CSV"
        )
    check_fits(6 * total, str(path))


def _sheet_name(path: Path, book: Any, name: str | None) -> str:
    names = [made.title for made in book.worksheets]
    if name is None and len(names) == 1:
        return str(names[0])
    listed = ", ".join(map(shortened, names[:12]))
    if name is None:
        raise ProblemError(f"{path} has {len(names)} sheets: {listed}; say which with {option('sheet', 'NAME')}")
    if name not in names:
        raise ArgumentError(f"{path} has no sheet {shortened(name)}; its sheets are {listed}")
    return name


def _padded(path: Path, rows: Iterable[Sequence[object]]) -> Iterator[tuple[int, Sequence[object]]]:
    """Yield the rows that are not empty, padded to the length of the longest before."""
    width = 0
    for number, row in _checked(enumerate(rows, start=1), str(path)):
        last = next((i for i in range(len(row), 0, -1) if not _blank(row[i - 1])), 0)
        if last:
            width = max(width, last)
            yield number, [*row[:last], *[None] * (width - last)]


def _blank(cell: object) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


# --- Parquet ---------------------------------------------------------------------------------------------------------


def _parquet(path: Path, leave_out: bool) -> Sheet:
    pyarrow = library("pyarrow", "data", "reading a Parquet file")
    parquet = library("pyarrow.parquet", "data", "reading a Parquet file")
    try:
        with parquet.ParquetFile(path) as file:
            about, schema = file.metadata, file.schema_arrow
            if about.num_rows > MOST_ROWS or len(schema) > MOST_COLUMNS or about.num_rows * len(schema) > MOST_CELLS:
                _refuse(str(path))
            _check_parquet(path, about, len(schema))
            types = pyarrow.types
            texts = [f.name for f in schema if types.is_string(f.type) or types.is_large_string(f.type)]
            odd = {f.name: str(f.type) for f in schema if types.is_nested(f.type) or "binary" in str(f.type)}
            names = [name for name in schema.names if name not in odd]
            if odd and not (leave_out and names):
                raise ProblemError(f"{path}: {_held(*next(iter(odd.items())))}; write a table of numbers and texts")
        try:
            # Repeated texts are kept once: a small file can contain very many of them.
            columns = _parquet_columns(parquet, path, names, odd, MANY_ROWS, once=texts)
        except OSError as error:
            if "Not yet implemented" not in str(error):
                raise
            # That is not possible where texts are stored as differences from the one before.
            columns = _parquet_columns(parquet, path, names, odd, FEW_ROWS, once=[])
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError) as error:
        if isinstance(error, ProblemError):
            raise
        raise ProblemError(f"{path} is not a readable Parquet file: {shortened(str(error))[1:-1]}") from None
    lines = list(range(1, len(columns[0]) + 1)) if columns else []
    return _of_columns(str(path), names, columns, lines, "row", 0, left_out=odd)


def _check_parquet(path: Path, about: Any, columns: int) -> None:
    """Refuse a file whose cells would take far more memory than the file: repeated ones take none there."""
    packed = max(1, path.stat().st_size)
    stored = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
    total = 2 * stored + BYTES_PER_CELL * about.num_rows * columns
    if total > QUICK_PARQUET and total > MOST_REPEATED * packed:
        raise ProblemError(
            f"{path} has {about.num_rows:,} rows and {columns:,} columns in {packed / 2**20:,.3g} MB, so that nearly all of it "
            "is repeated; leave out the columns that are not needed, or save it as CSV"
        )
    check_fits(total, str(path))


def _parquet_columns(
    parquet: Any, path: Path, names: list[str], odd: Mapping[str, str], rows: int, once: list[str]
) -> list[list[object]]:
    columns: list[list[object]] = [[] for _ in names]
    with parquet.ParquetFile(path, read_dictionary=once) as file:
        read, size, chosen = 0, 0, list(dict.fromkeys(names)) if odd else None
        for batch in file.iter_batches(rows, columns=chosen):
            read, size = read + len(batch), size + batch.nbytes
            report(f"Reading {path.name}", read, file.metadata.num_rows)
            check_fits(size, str(path))
            if batch.schema.names != names:  # a column "a.b" is also what is called b within a column "a"
                raise ProblemError(f"{path}: {_held(*next(iter(odd.items())))}; write the table without it")
            for column, array in zip(columns, batch.columns, strict=True):
                column += _cells(array)
    return columns


def _cells(array: Any) -> list[object]:
    if hasattr(array, "dictionary"):
        array.validate(full=True)  # a damaged file may point outside its dictionary
        words = array.dictionary.to_pylist()
        return [None if i is None else words[i] for i in array.indices.to_pylist()]
    cells: list[object] = array.to_pylist()
    return cells
