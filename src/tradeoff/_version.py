"""The version of the program, in one place: the package's metadata and the logs both take it from here."""

__version__ = "0.3.0"
