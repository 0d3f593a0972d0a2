"""All errors that tradeoff raises.

::

    TradeoffError
    ├── ProblemError      the decision problem (a file, a table, an array) is not valid         exit code 3
    │   ├── TooLargeError     it is valid, but would not fit in memory                         exit code 3
    │   └── UndecidedError    a table leaves something open that only a person can say         exit code 3
    ├── ArgumentError     what was asked of a valid problem makes no sense (weights, policies)  exit code 2
    ├── LogError          a log of answers cannot be continued with this problem or version      exit code 4
    └── StoreError        answers cannot be kept: a file that is full, in use, or not a log      exit code 4

Each message says what is wrong, where, what was found and what to do. A ``ProblemWarning`` says what was corrected, such as
unreachable states.
"""

from collections.abc import Mapping, Sequence


class TradeoffError(Exception):
    """The base of all errors that tradeoff raises on purpose."""


class ProblemError(TradeoffError, ValueError):
    """The decision problem is not valid."""


class TooLargeError(ProblemError):
    """The problem would not fit in memory; the message gives the estimated size."""


class UndecidedError(ProblemError):
    """A table leaves something open that only a person can say: whether less or more is better, what to do about gaps.

    ``undecided`` lists what (see ``tradeoff.sources.tables.deciding``); ``objectives`` are the columns to be weighed, with
    "min", "max", or None where that is open; ``others`` are complaints that no answer removes; ``unused`` says of every other
    column why it is not weighed.
    """

    def __init__(
        self,
        message: str,
        undecided: Sequence[object] = (),
        objectives: Sequence[tuple[str, str | None]] = (),
        others: Sequence[str] = (),
        unused: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.unused = dict(unused or {})
        self.undecided, self.objectives, self.others = tuple(undecided), tuple(objectives), tuple(others)


class ArgumentError(TradeoffError, ValueError):
    """What was asked of a valid problem makes no sense: weights, policies, options."""


class LogError(TradeoffError, ValueError):
    """A log of answers cannot be continued: another problem, another version, or damaged."""


class StoreError(TradeoffError):
    """Answers cannot be kept or read back: the file is in use, cannot be written, or is not a log."""


class ProblemWarning(UserWarning):
    """Something about a problem was corrected."""
