"""Studies with real people: sessions, attention checks, and data export."""

from tradeoff.studies.session import MenuPrompt, Prompt, Session, TurnError
from tradeoff.studies.sessions import Sessions
from tradeoff.studies.study import Study

__all__ = ["MenuPrompt", "Prompt", "Session", "Sessions", "Study", "TurnError"]
