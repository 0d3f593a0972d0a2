"""The description of the JSON API, in the OpenAPI format."""

from __future__ import annotations

from functools import cache
from typing import Any

from tradeoff.model import ASKS
from tradeoff.studies.session import MOST_STATEMENTS

WORD_REPLIES = ("equal", "skip")

Schema = dict[str, Any]

NUMBER: Schema = {"type": "number"}
TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer", "minimum": 0}
POSITIVE: Schema = {"type": "integer", "minimum": 1, "maximum": 10**9}
FLAG: Schema = {"type": "boolean"}
SHARE: Schema = {"type": ["number", "null"]}


def _object(properties: dict[str, Schema], *, required: tuple[str, ...] | None = None) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties if required is None else required),
        "additionalProperties": False,
    }


def _list(of: Schema) -> Schema:
    return {"type": "array", "items": of}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


STATE = {
    "finished": FLAG,
    "turn": {**POSITIVE, "description": "Names the question; an answer to it gives the same number."},
    "answered": {**WHOLE, "description": "How many answers can be undone."},
    "at_most": {"type": ["integer", "null"], "description": "The most questions still to come, this one included."},
    "question": {"oneOf": [{"type": "null"}, _ref("Question")]},
}

NAMED = {
    "gains": _list(NUMBER),
    "average": _list(_ref("Amount")),
    "name": {**TEXT, "description": "What the item or plan is called."},
    "index": {"type": ["integer", "null"], "description": "The item's place in its catalogue."},
    "labels": {"type": "object", "additionalProperties": TEXT},
}

AGAINST = {
    "loss": {**NUMBER, "description": "The part of the best possible gain that it loses on average over what fits."},
    "wins": {**_list(TEXT), "description": "In what it is better than what is recommended."},
    "loses": {**_list(TEXT), "description": "In what it is worse."},
}
INTERVALS: Schema = {"type": ["object", "null"], "additionalProperties": _list(NUMBER)}
SHARE_WORDS = "The share of all weights that fit the trusted answers, each counted the same, for which it is the best."

RISK = {
    "oneOf": [{"type": "null"}, _ref("Risk")],
    "description": "How the outcomes are really spread; null where nothing is left to chance.",
}

SCHEMAS: dict[str, Schema] = {
    "Amount": _object({"objective": TEXT, "amount": NUMBER, "unit": TEXT, "goal": {"enum": ["max", "min"]}}),
    "Story": _object(
        {
            "share": {
                "type": "number",
                "exclusiveMinimum": 0,
                "maximum": 1.000001,
                "description": "The story's weight in the average; not how often it happens, which is ``probability``.",
            },
            "count": {**WHOLE, "description": "The share as a count out of ``of``; the counts of all stories add up."},
            "of": WHOLE,
            "probability": {**NUMBER, "description": "How likely exactly this story is."},
            "words": {**_list(TEXT), "description": "The story as people read it, step by step."},
            "states": _list(TEXT),
            "actions": _list(TEXT),
            "outcome": _list(_ref("Amount")),
        }
    ),
    "Spread": _object(
        {
            "objective": TEXT,
            "unit": TEXT,
            "goal": {"enum": ["max", "min"]},
            "words": {**TEXT, "description": "What happens how often, and the best and the worst, in a sentence."},
            "quantiles": {
                "type": "object",
                "additionalProperties": NUMBER,
                "description": "By share: the amount that is not exceeded with this probability.",
            },
            "dots": {**_list(NUMBER), "description": "20 amounts, each of which stands for 1 time in 20."},
            "range": {
                "type": ["array", "null"],
                "items": NUMBER,
                "description": "The least and the greatest amount that can happen; null where only runs were seen.",
            },
        }
    ),
    "Risk": _object(
        {
            "rollouts": {
                "type": ["integer", "null"],
                "description": "How many simulated runs this was estimated from; null where it is exact.",
            },
            "error": {
                **NUMBER,
                "description": "A chance is off by more than this at most 1 time in 20; 0 where it is exact.",
            },
            "basis": {**TEXT, "description": "The same in a sentence."},
            "objectives": _list(_ref("Spread")),
        }
    ),
    "Guide": _object(
        {
            "name": {**TEXT, "description": "What the plan is called."},
            "lead": TEXT,
            "rules": {
                **_list(_object({"when": TEXT, "do": TEXT})),
                "description": "What to do when, the likeliest first; an empty ``when`` is whenever there is a choice.",
            },
            "covered": {**TEXT, "description": "How much the rules cover, as a sentence; empty where it is all."},
        }
    ),
    "Named": _object(NAMED),
    "Option": _object(
        {
            "name": {**TEXT, "description": "What it is called; different for the two sides of a question."},
            "gains": _list(NUMBER),
            "average": _list(_ref("Amount")),
            "stories": _list(_ref("Story")),
            "risk": RISK,
        }
    ),
    "Recommended": _object({**NAMED, "stories": _list(_ref("Story")), "risk": RISK}),
    "Question": _object(
        {
            "asks": {"enum": list(ASKS), "description": "Which is best, or which is best and which is worst."},
            "options": {
                **_list(_ref("Option")),
                "minItems": 2,
                "description": "In the order in which to show them, from 1.",
            },
        }
    ),
    "State": _object(STATE),
    "Begun": _object({"id": TEXT, **STATE}),
    "Answer": _object({"turn": POSITIVE, "reply": {"oneOf": [{"enum": list(WORD_REPLIES)}, _ref("BestWorst")]}}),
    "BestWorst": _object(
        {
            "best": {**POSITIVE, "description": "The number of the best option, counted from 1."},
            "worst": {**POSITIVE, "description": "The number of the worst one, where the question asks for it."},
        },
        required=("best",),
    ),
    "Statement": _object(
        {
            "text": {
                **TEXT,
                "description": 'Such as "price > speed", "price 20% to 40%" or "Alto > Brio". A statement that stands '
                f"already is not recorded again; at most {MOST_STATEMENTS} can stand.",
            },
            "turn": {**POSITIVE, "description": "If given, nothing is recorded when another question is asked by now."},
        },
        required=("text",),
    ),
    "Undo": {
        **_object(
            {
                "turn": {
                    **POSITIVE,
                    "description": "If given, nothing is undone when another question is asked by now.",
                },
                "number": {**POSITIVE, "description": "Which answer; the last one if it is left out."},
            },
            required=(),
        ),
        "minProperties": 1,
    },
    "Recommendation": _object(
        {
            "finished": FLAG,
            "complete": FLAG,
            "questions": WHOLE,
            "reason": TEXT,
            "option": _ref("Recommended"),
            "guide": {
                "oneOf": [{"type": "null"}, _ref("Guide")],
                "description": "How to follow the plan; null for an item, which is simply taken.",
            },
            "runner_up": {"oneOf": [{"type": "null"}, _ref("Named")], "description": "Another good choice."},
            "model_choice": {
                "oneOf": [{"type": "null"}, _ref("Named")],
                "description": "What the other answers favour, where the respondent preferred the recommended option to it.",
            },
            "contested_by": {
                "oneOf": [{"type": "null"}, _ref("Named")],
                "description": "What the respondent chose over the recommended option, and did not confirm.",
            },
            "weights": {"type": "object", "additionalProperties": NUMBER},
            "importance": {
                **INTERVALS,
                "description": "The smallest and largest importance of each objective, as it is stated: very likely for "
                "careful, right if the answers are for certified; null where no priorities fit.",
            },
            "importance_if_right": {
                **INTERVALS,
                "description": "The smallest and largest importance that fits all trusted answers, if these are right.",
            },
            "regret_bound": SHARE,
            "robust_bound": SHARE,
            "likely_regret": SHARE,
            "likely_worst": SHARE,
            "fits": {"type": "boolean", "description": "Whether one set of priorities explains the answers."},
            "target": SHARE,
            "expected_left": {**SHARE, "description": "About how many questions are still to come, this one included."},
            "certainty": {**_list(TEXT), "description": "How good the recommendation is, in sentences."},
            "unidentified": {
                **_list(TEXT),
                "description": "Objectives whose interval is wide, while nothing in it makes another plan better by more than "
                "the target, or which no plan changes.",
            },
            "doubtful": _list(WHOLE),
            "unexplained": _list(WHOLE),
            "conflicts": _list(WHOLE),
            "notes": {**_list(TEXT), "description": "What is worth knowing: columns not weighed, options left out."},
        }
    ),
    "Place": _object(
        {**NAMED, "place": {**WHOLE, "minimum": 1}, **AGAINST, "share": {**NUMBER, "description": SHARE_WORDS}}
    ),
    "Ranking": _object(
        {
            "ranking": {**_list(_ref("Place")), "description": "The best few; the first is what is recommended."},
            "considered": {**WHOLE, "description": "How many options were compared."},
            "drawn": {
                "type": ["integer", "null"],
                "description": "How many weight vectors the shares were counted over; null where they are exact.",
            },
            "error": {**NUMBER, "description": "How far off a share may be, 19 times in 20."},
            "order": TEXT,
            "basis": {**TEXT, "description": "What the shares are shares of, in sentences."},
        }
    ),
    "WhyNot": _object(
        {
            **NAMED,
            **AGAINST,
            "verdict": {"enum": ["recommended", "same", "dominated", "never", "ruled out", "possible", "unknown"]},
            "beaten_by": {**_list(TEXT), "description": "What beats it, or what together does whatever the weights."},
            "weights": {
                "type": ["object", "null"],
                "additionalProperties": NUMBER,
                "description": "Weights for which it is the best, as near as can be to the estimate.",
            },
            "answers": {**_list(WHOLE), "description": "The numbers of the answers that together rule it out."},
            "sentences": {**_list(TEXT), "description": "The same as people read it."},
        }
    ),
    "Error": _object({"error": TEXT}),
}

WORDS = {
    400: "The body is not JSON, or the server does not answer to this name.",
    403: "Not allowed: by invitation only, or sent by another site.",
    404: "There is no such interview, or nothing of that name.",
    408: "The request did not arrive in time.",
    409: "The question is already answered, or is of another kind, or the interview has not begun or cannot use this.",
    413: "The body is too large.",
    415: "Send JSON.",
    422: "A field is missing, unknown or wrong.",
    429: "This address has reached a limit; try again after the seconds in Retry-After.",
    503: "The store failed, or the server is busy or not ready yet; try again after the seconds in Retry-After.",
}
KEY: Schema = {
    "name": "Idempotency-Key",
    "in": "header",
    "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-]{22,128}$"},
    "description": "Random, such as a UUID. A request that is sent again with the same key begins nothing new.",
}
ID: Schema = {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}


def _operation(
    name: str, summary: str, gives: str, *, takes: str | None = None, made: bool = False, errors: tuple[int, ...] = ()
) -> Schema:
    success = {"description": summary, "content": {"application/json": {"schema": _ref(gives)}}}
    responses: dict[str, Schema] = {"201" if made else "200": success}
    for status in errors:
        content = {"application/json": {"schema": _ref("Error")}}
        responses[str(status)] = {"description": WORDS[status], "content": content}
    operation: Schema = {"operationId": name, "summary": summary, "responses": responses}
    operation["parameters"] = [KEY if made else ID]
    if takes is not None:
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": _ref(takes)}}}
    return operation


def _asking_by_name(read: tuple[int, ...]) -> Schema:
    found = _operation("whyNot", "Why something is not what is recommended", "WhyNot", errors=(*read, 422))
    name = {"type": "string", "minLength": 1, "maxLength": 200}
    words = "The name of an item, or a place of the ranking."
    found["parameters"] = [ID, {"name": "name", "in": "query", "required": True, "schema": name, "description": words}]
    return found


@cache
def document() -> Schema:
    """Return the OpenAPI document."""
    read, write = (400, 404, 429, 503), (400, 403, 404, 408, 409, 413, 415, 422, 429, 503)
    begin = _operation(
        "begin", "Begin an interview", "Begun", made=True, errors=(400, 403, 408, 413, 415, 422, 429, 503)
    )
    followers = ("beginInvited", "question", "answer", "state", "undo", "recommendation", "ranking", "whyNot")
    begin["responses"]["201"]["links"] = {
        name: {"operationId": name, "parameters": {"id": "$response.body#/id"}} for name in followers
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "tradeoff",
            "version": "2",
            "description": "Find the plan that is best for one person by asking them a few easy questions.",
        },
        "paths": {
            "/api/interviews": {"post": begin},
            "/api/interviews/{id}/begin": {
                "post": _operation("beginInvited", "Begin an interview that was made as a link", "State", errors=write)
            },
            "/api/interviews/{id}/question": {
                "get": _operation("question", "The question to be answered now", "State", errors=(*read, 409))
            },
            "/api/interviews/{id}/answers": {
                "post": _operation("answer", "Answer the question", "State", takes="Answer", errors=write)
            },
            "/api/interviews/{id}/statements": {
                "post": _operation(
                    "state", "Say something without being asked", "State", takes="Statement", errors=write
                )
            },
            "/api/interviews/{id}/undo": {
                "post": _operation("undo", "Undo an answer", "State", takes="Undo", errors=write)
            },
            "/api/interviews/{id}/recommendation": {
                "get": _operation("recommendation", "What is recommended now", "Recommendation", errors=read)
            },
            "/api/interviews/{id}/ranking": {
                "get": _operation("ranking", "The best few for this person", "Ranking", errors=read)
            },
            "/api/interviews/{id}/why-not": {"get": _asking_by_name(read)},
        },
        "components": {"schemas": SCHEMAS},
    }
