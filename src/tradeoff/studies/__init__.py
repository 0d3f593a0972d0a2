"""Studies with real people: sessions, attention checks, and data export."""

from tradeoff.studies.session import MenuPrompt, Prompt, Session, TurnError
from tradeoff.studies.sessions import Page, Sessions
from tradeoff.studies.study import Study

__all__ = ["MenuPrompt", "Page", "Prompt", "Session", "Sessions", "Study", "TurnError"]
