"""Well-known words in the heads of columns: they propose what is better, and never decide it."""

from __future__ import annotations

import re
from typing import Literal

# The beginnings and ends of words, long enough not to occur in others by chance; compounds end in the word that counts.
_LESS = (
    "price", "cost", "rent", "fee", "weight", "distance", "noise", "emission", "co2", "consumption", "risk", "danger",
    "delay", "wait", "waiting", "duration", "commute", "commuting", "travel", "delivery", "charging", "mileage", "tax",
    "deposit", "calories", "sugar", "latency", "error", "errors", "thickness", "pollution", "crime", "expense", "expenses",
    "premium", "accident", "accidents", "rank", "preis", "kosten", "miete", "gewicht", "entfernung", "lärm", "verbrauch",
    "dauer", "pendelzeit", "fahrzeit", "nebenkosten", "prix", "coût", "loyer", "poids", "precio", "coste", "peso",
    "alquiler", "prezzo",
)  # fmt: skip
_MORE = (
    "battery", "rating", "ratings", "score", "speed", "quality", "range", "capacity", "memory", "ram", "storage", "resolution",
    "salary", "income", "revenue", "profit", "benefit", "benefits", "comfort", "safety", "star", "stars", "camera", "area",
    "room", "rooms", "space", "vacation", "holiday", "holidays", "warranty", "efficiency", "power", "brightness",
    "reliability", "balcony", "garden", "bewertung", "gehalt", "lohn", "wohnfläche", "akku", "reichweite", "leistung",
    "urlaub", "qualität", "salaire", "note", "surface", "sueldo", "calidad",
)  # fmt: skip
_COMPOUND = 5  # letters from which on a word is also looked for at the end of longer ones: Kaltmiete

YEAR = "a year"
# A rate: "km per year" is no year.
_PER_YEAR = re.compile(r"(?:\b(?:per|a|pro|im|par|por|al)\s+|/\s*)(?:year|jahr|année|año)\b", re.IGNORECASE)
# Numbers that only tell one thing from another.
_LABELS = {
    "id": "an identifier", "ids": "an identifier", "uid": "an identifier", "uuid": "an identifier", "sku": "an identifier",
    "ean": "an identifier", "isbn": "an identifier", "asin": "an identifier", "index": "a count of rows",
    "idx": "a count of rows", "unnamed": "a count of rows", "nr": "a count of rows", "#": "a count of rows",
    "zip": "a postal code", "zipcode": "a postal code", "postcode": "a postal code", "postal": "a postal code",
    "plz": "a postal code", "year": YEAR, "jahr": YEAR, "baujahr": YEAR, "année": YEAR, "año": YEAR,
    "phone": "a telephone number", "telephone": "a telephone number", "fax": "a telephone number",
    "latitude": "a place", "longitude": "a place", "lat": "a place", "lon": "a place", "lng": "a place", "date": "a date",
}  # fmt: skip
_ALONE = {"no": "a count of rows", "no.": "a count of rows", "number": "a count of rows", "code": "an identifier",
          "row": "a count of rows"}  # fmt: skip
IDENTIFIERS = ("an identifier", "a count of rows")  # which may name an item

_DURATION = re.compile(
    r"\btime|time\b|zeit|dauer|duration|\bwait|delay|commut|journey|\btrip|flight|\bride|\bdrive|\bwalk|charging|runtime|"
    r"\btemps|durée|tiempo|duración|durata|laufzeit|fahrt",
    re.IGNORECASE,
)
_LOW, _HIGH = re.compile(r"\(\s*(?:low|less|min)", re.IGNORECASE), re.compile(r"\(\s*(?:high|more|max)", re.IGNORECASE)


def _words(head: str) -> list[str]:
    return re.findall(r"[^\W_]+|#", re.sub(r"[(\[].*", "", head).casefold())


def proposed_goal(head: str) -> Literal["max", "min"] | None:
    """Return what is usually better of a column with this head, or None; in "battery weight" the last word counts.

    >>> [proposed_goal(head) for head in ("Price (EUR)", "battery weight", "Kaltmiete", "camera_score", "width")]
    ['min', 'min', 'min', 'max', None]
    """
    if _LOW.search(head) or _HIGH.search(head):
        return "min" if _LOW.search(head) else "max"
    for word in reversed(_words(head)):
        for goal, known in (("min", _LESS), ("max", _MORE)):
            if (
                word in known
                or word.removesuffix("s") in known
                or any(len(k) >= _COMPOUND and word.endswith(k) for k in known)
            ):
                return goal  # type: ignore[return-value]
    return None


def label_kind(head: str) -> str | None:
    """Return what the numbers of a column are, if by its head they are probably not to be weighed.

    >>> label_kind("Zip code"), label_kind("model year"), label_kind("km per year"), label_kind("number of rooms")
    ('a postal code', 'a year', None, None)
    """
    if proposed_goal(head) is not None or _PER_YEAR.search(head):
        return None
    alone = _ALONE.get(head.strip().casefold())
    return alone or next((_LABELS[word] for word in _words(head) if word in _LABELS), None)


def is_duration(name: str) -> bool:
    """Return whether a name is that of a duration, where "(min)" may mean minutes.

    >>> is_duration("Flight time"), is_duration("Pendelzeit"), is_duration("price"), is_duration("centimeters")
    (True, True, False, False)
    """
    return _DURATION.search(name) is not None
