"""The JSON objects of the API, and the OpenAPI document that msgspec makes from them.

Requests are checked against these types (``api.py``). Responses come from ``presentation.data``; tests check that they agree.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tradeoff.studies.session import MOST_STATEMENTS

VERSION = "2"  # of the API
LONGEST_NAME = 200  # characters of a name that is asked about


def note(description: str) -> Meta:
    """Return the annotation that describes a field in the document."""
    return Meta(description=description)


Whole = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1, le=10**9)]
Share = Annotated[float | None, note("A share of the best possible gain, or null where none can be stated.")]
Labels = Annotated[dict[str, str], note("Columns of the table that are shown but not weighed, by name.")]
Numbers = Annotated[list[Whole], note("Numbers of answers.")]


class JsonObject(msgspec.Struct, forbid_unknown_fields=True):
    """A JSON object with exactly these fields."""


# --- requests --------------------------------------------------------------------------------------------------------


class NoBody(JsonObject):
    """Nothing is sent."""


class BestWorst(JsonObject):
    """The numbers of the best and, where the question asks for it, the worst option, counted from 1 as shown."""

    best: Annotated[Positive, note("The number of the best option.")]
    worst: Annotated[Positive | UnsetType, note("The number of the worst option.")] = UNSET


class AnswerBody(JsonObject):
    """A reply to the current question."""

    turn: Annotated[Positive, note("The turn of the question that is answered.")]
    reply: Annotated[
        Literal["equal", "skip"] | BestWorst,
        Meta(description="About equal, skip, or the best option.", examples=[{"best": 1}, "equal"]),
    ]


class StatementBody(JsonObject):
    """A statement about the participant's priorities."""

    text: Annotated[
        str,
        Meta(
            description=f"A statement that stands already is not recorded again; at most {MOST_STATEMENTS} can stand.",
            examples=["price > speed", "price 20% to 40%", "Alto > Brio"],
        ),
    ]
    turn: Annotated[Positive | UnsetType, note("Record nothing unless this is the current turn.")] = UNSET


class UndoBody(JsonObject):
    """The answer to undo: the last one, or one by its number."""

    turn: Annotated[Positive | UnsetType, note("Undo nothing unless this is the current turn.")] = UNSET
    number: Annotated[Positive | UnsetType, note("The number of the answer; default: the last.")] = UNSET


# --- responses -------------------------------------------------------------------------------------------------------


class AmountData(JsonObject):
    """An amount of one objective."""

    objective: Annotated[str, note("The name of the objective.")]
    amount: Annotated[float, note("In its unit.")]
    unit: str
    goal: Annotated[Literal["max", "min"], note("Whether more or less is better.")]


class ObjectiveData(JsonObject):
    """Something that options differ in."""

    name: str
    unit: str
    goal: Annotated[Literal["max", "min"], note("Whether more or less is better.")]
    description: str
    best: Annotated[float, note("The best attainable amount.")]
    worst: Annotated[float, note("The worst attainable amount.")]
    reference: Annotated[float, note("The amount with a gain of 0.")]
    matters: Annotated[bool, note("Whether any option can change it.")]


class StoryData(JsonObject):
    """One way in which a plan can turn out."""

    share: Annotated[
        float,
        Meta(gt=0, le=1.000001, description="Its weight in the average; not how often it happens (``probability``)."),
    ]
    count: Annotated[Whole, note("The share as a count out of ``of``; the counts of all stories add up.")]
    of: Whole
    probability: Annotated[float, note("How likely exactly this story is.")]
    words: Annotated[list[str], note("The story in words, step by step.")]
    states: list[str]
    actions: list[str]
    outcome: list[AmountData]


class SpreadData(JsonObject):
    """The distribution of one objective."""

    objective: str
    unit: str
    goal: Literal["max", "min"]
    words: Annotated[str, note("What happens how often, and the best and the worst, in a sentence.")]
    quantiles: Annotated[dict[str, float], note("By probability: the amount that is not exceeded with it.")]
    dots: Annotated[list[float], note("20 amounts, each of which stands for 1 time in 20.")]
    range: Annotated[list[float] | None, note("The least and greatest possible amount; null if only runs were seen.")]


class RiskData(JsonObject):
    """The distribution of a plan's outcomes."""

    rollouts: Annotated[int | None, note("Simulated runs this was estimated from; null if it is exact.")]
    error: Annotated[float, note("A probability is off by more than this at most 1 time in 20.")]
    basis: Annotated[str, note("The same in a sentence.")]
    objectives: list[SpreadData]


class NamedData(JsonObject):
    """An option: what it is called, and what it amounts to."""

    gains: Annotated[list[float], note("By objective: 0 is the reference, 1 the best attainable.")]
    average: Annotated[list[AmountData], note("The expected amounts.")]
    name: str
    index: Annotated[int | None, note("The item's place in its table; null for a plan.")]
    labels: Labels


class OptionData(NamedData):
    """An option with some of the ways it can turn out, the largest share first."""

    stories: list[StoryData]
    risk: Annotated[RiskData | None, note("null where nothing is left to chance.")]


class QuestionData(JsonObject):
    """A question."""

    asks: Annotated[Literal["best", "best-worst"], note("Which is best, or which is best and which worst.")]
    options: Annotated[list[OptionData], Meta(min_length=2, description="In the order in which to show them, from 1.")]


class StateData(JsonObject):
    """Where an interview stands."""

    finished: bool
    turn: Annotated[Positive, note("Names the question; an answer to it gives the same number.")]
    answered: Annotated[Whole, note("How many answers can be undone.")]
    at_most: Annotated[int | None, note("The most questions still to come, including this one.")]
    expected_left: Annotated[float | None, note("About how many questions are still to come.")]
    title: Annotated[str, note("What the interview is about.")]
    objectives: Annotated[list[ObjectiveData], note("What the options differ in.")]
    question: Annotated[QuestionData | None, note("null when the interview is finished.")]


class BegunData(StateData):
    """A new interview."""

    id: Annotated[str, note("A secret that gives access to the interview, also as /i/{id}.")]


class RuleData(JsonObject):
    """What to do in a situation."""

    when: Annotated[str, note("Empty for a part of a solution.")]
    do: str
    often: Annotated[str, note("How often the rule applies, of 20 times or decisions; empty where it always does.")]


class GuideData(JsonObject):
    """How to follow a plan."""

    name: str
    lead: Annotated[str, note("How the rules are to be read.")]
    rules: Annotated[list[RuleData], note("The first one that fits applies.")]
    covered: Annotated[str, note("How much the rules cover, as a sentence; empty where it is all.")]


Intervals = Annotated[
    dict[str, list[float | None]] | None, note("The smallest and largest value by objective; or null.")
]


class RecommendationData(JsonObject):
    """What is recommended now, and how sure that is."""

    finished: bool
    complete: Annotated[bool, note("Whether the target was reached.")]
    questions: Whole
    reason: Annotated[str, note("Why the interview ended, or why it goes on.")]
    option: OptionData
    guide: Annotated[GuideData | None, note("How to follow the plan; null for an item.")]
    runner_up: Annotated[NamedData | None, note("Another good choice.")]
    model_choice: Annotated[
        NamedData | None, note("What the other answers favour, if the participant preferred ``option`` to it.")
    ]
    contested_by: Annotated[NamedData | None, note("What the participant chose over ``option``, and did not confirm.")]
    weights: Annotated[dict[str, float], note("The estimated importance by objective; they sum to 1.")]
    importance: Annotated[
        Intervals, note("Importance by objective: very likely for careful, if answers are right for certified.")
    ]
    importance_if_right: Annotated[Intervals, note("Importance that fits all trusted answers exactly.")]
    regret_bound: Share
    robust_bound: Share
    likely_regret: Share
    likely_worst: Share
    fits: Annotated[bool, note("Whether one set of priorities explains the answers.")]
    target: Share
    expected_left: Annotated[float | None, note("About how many questions are still to come.")]
    certainty: Annotated[list[str], note("How sure the recommendation is, in sentences.")]
    unidentified: Annotated[list[str], note("Objectives whose interval is wide and makes no noticeable difference.")]
    doubtful: Numbers
    unexplained: Numbers
    conflicts: Numbers
    notes: Annotated[list[str], note("Columns that are not weighed, options that are left out.")]


class ComparedData(NamedData):
    """An option compared with the recommended one."""

    loss: Annotated[float, note("The share of the best possible gain that it loses on average.")]
    wins: Annotated[list[str], note("In what it is better than the recommended option.")]
    loses: Annotated[list[str], note("In what it is worse.")]


class PlaceData(ComparedData):
    """A place of the ranking."""

    place: Positive
    share: Annotated[float, note("The share of all weights that fit the trusted answers for which it is best.")]


class RankingData(JsonObject):
    """The best few options."""

    ranking: Annotated[list[PlaceData], note("The first is the recommended option.")]
    considered: Annotated[Whole, note("How many options were compared.")]
    drawn: Annotated[int | None, note("Weight vectors that shares were counted over; null if exact.")]
    error: Annotated[float, note("A share is off by more than this at most 1 time in 20.")]
    order: Annotated[str, note("How the places are ordered, in a sentence.")]
    basis: Annotated[str, note("What the shares are shares of, in sentences.")]


class WhyNotData(ComparedData):
    """Why an option is not recommended."""

    verdict: Literal["recommended", "same", "dominated", "never", "ruled out", "possible", "unknown"]
    beaten_by: Annotated[list[str], note("Options of which, for any weights, one is better.")]
    weights: Annotated[dict[str, float] | None, note("The weights nearest to the estimate for which it is the best.")]
    answers: Annotated[list[Whole], note("The numbers of the answers that together rule it out.")]
    sentences: Annotated[list[str], note("The same in words.")]


class ErrorData(JsonObject):
    """Why a request was refused."""

    error: Annotated[str, note("A sentence.")]


# --- the document ----------------------------------------------------------------------------------------------------

ERRORS = {
    400: "The body is not JSON, or the host name is unknown.",
    403: "The study is open by invitation only, or another site sent the request.",
    404: "There is no such interview or option.",
    408: "The request did not arrive in time.",
    409: "The question is already answered, the reply does not fit it, or the interview has not begun.",
    413: "The body is too large.",
    415: "The content type is not application/json.",
    422: "A field is missing, unknown or wrong.",
    429: "This address has reached a limit; try again after the seconds in Retry-After.",
    503: "The store failed, or the server is busy; try again after the seconds in Retry-After.",
}
READ, WRITE = (400, 404, 429, 503), (400, 403, 404, 408, 409, 413, 415, 422, 429, 503)
ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-]{22,128}$"},
    "description": "Random, such as a UUID. A request that is sent again with the same key begins nothing new.",
}
NAME = {
    "name": "name",
    "in": "query",
    "required": True,
    "schema": {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME},
    "description": "The name of an item, or a place of the ranking.",
}

Operation = tuple[str, str, str, type[JsonObject], type[JsonObject] | None, tuple[int, ...]]
INTERVIEW = "/api/interviews/{id}"
# Method and path, operation id, summary, response, request body, errors.
OPERATIONS: tuple[Operation, ...] = (
    ("post /api/interviews", "begin", "Begin an interview", BegunData, None, tuple(s for s in WRITE if s not in (404, 409))),
    (f"post {INTERVIEW}/begin", "beginInvited", "Begin an interview that was made as a link", StateData, None, WRITE),
    (f"get {INTERVIEW}/question", "question", "Get the current question", StateData, None, (*READ, 409)),
    (f"post {INTERVIEW}/answers", "answer", "Answer the current question", StateData, AnswerBody, WRITE),
    (f"post {INTERVIEW}/statements", "addStatement", "State a priority", StateData, StatementBody, WRITE),
    (f"post {INTERVIEW}/undo", "undo", "Undo an answer", StateData, UndoBody, WRITE),
    (f"get {INTERVIEW}/recommendation", "recommendation", "Get the recommendation", RecommendationData, None, (*READ, 409)),
    (f"get {INTERVIEW}/ranking", "ranking", "Get the best few options", RankingData, None, (*READ, 409)),
    (f"get {INTERVIEW}/why-not", "whyNot", "Ask why an option is not recommended", WhyNotData, None, (*READ, 409, 422)),
)  # fmt: skip


def _content(kind: type[JsonObject]) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{kind.__name__}"}}}


def _operation(operation: Operation) -> dict[str, Any]:
    path, name, summary, response, body, errors = operation
    new = response is BegunData
    responses: dict[str, Any] = {
        "201" if new else "200": {"description": summary, "content": _content(response)},
        **{str(status): {"description": ERRORS[status], "content": _content(ErrorData)} for status in errors},
    }
    if new:
        responses["201"]["links"] = {
            follower: {"operationId": follower, "parameters": {"id": "$response.body#/id"}}
            for _, follower, *_ in OPERATIONS[1:]
        }
    return {
        "operationId": name,
        "summary": summary,
        "tags": ["result" if path.endswith(("recommendation", "ranking", "why-not")) else "interview"],
        "parameters": [KEY] if new else [ID, NAME] if name == "whyNot" else [ID],
        **({} if body is None else {"requestBody": {"required": True, "content": _content(body)}}),
        "responses": responses,
    }


@cache
def document() -> dict[str, Any]:
    """Return the OpenAPI document."""
    types = {kind for operation in OPERATIONS for kind in operation[3:5]} | {ErrorData}
    _, schemas = msgspec.json.schema_components(
        sorted(types - {None}, key=lambda kind: kind.__name__), ref_template="#/components/schemas/{name}"
    )
    schemas["UndoBody"]["minProperties"] = 1
    paths: dict[str, Any] = {}
    for operation in OPERATIONS:
        method, path = operation[0].split(" ")
        paths[path] = {method: _operation(operation)}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "tradeoff",
            "version": VERSION,
            "description": "Find the option that is best for one person by asking a few easy questions.",
        },
        "paths": paths,
        "components": {"schemas": schemas},
    }
