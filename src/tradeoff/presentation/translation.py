"""Marks the texts that people read, so that a translator's tools find them.

``pybabel extract`` collects every ``_("...")``. Whatever is filled in stands in braces: ``_("within {share}").format(...)``.
"""

from __future__ import annotations

from gettext import gettext as _
from gettext import ngettext

__all__ = ["_", "ngettext"]
