"""Studies with real people: sessions, attention checks, the service behind pages and API, and data export."""

from tradeoff.studies.session import Prompt, Session, TurnError, View
from tradeoff.studies.study import Study

__all__ = ["Prompt", "Session", "Study", "TurnError", "View"]
