"""People who are asked: one person's way through the questions, a study of many, and its data to take away."""

from tradeoff.studies.session import Prompt, Session, TurnError
from tradeoff.studies.sessions import Sessions
from tradeoff.studies.study import Study

__all__ = ["Prompt", "Session", "Sessions", "Study", "TurnError"]
