"""Regenerate the bundled problems that are too large to write by hand: coffee, vacuum and portfolio.

    python tools/make_examples.py [FOLDER]

writes coffee.csv, vacuum.csv, vacuum.places.csv and portfolio.csv into FOLDER (by default src/tradeoff/examples), byte
for byte the same every time. The numbers are invented; the stories around them are in the TOML files beside the tables.
"""

from __future__ import annotations

import argparse
import csv
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

EXAMPLES = Path(__file__).parent.parent / "src" / "tradeoff" / "examples"

T = TypeVar("T")
Amounts = tuple[float, ...]
Branch = tuple[float, str, Amounts]  # probability, next state, what this branch earns or costs
Choices = dict[str, list[Branch]]  # by action


def write(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a CSV table."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def plain(number: float) -> str:
    """Return a number as a person writes it: ten digits at most, and no sign on a zero."""
    return f"{number + 0.0:.10g}"


def explore(start: str, choices: Callable[[str], Choices]) -> dict[str, Choices]:
    """Return what can be done in every state that can be reached, in the order in which they are met."""
    found: dict[str, Choices] = {start: {}}
    queue = [start]
    for state in queue:
        found[state] = choices(state)
        for branches in found[state].values():
            for _, following, _ in branches:
                if following not in found:
                    found[following] = {}
                    queue.append(following)
    return found


def rows_of(model: dict[str, Choices]) -> Iterable[list[str]]:
    """Yield the rows of a table of transitions: one for each branch."""
    for state, choices in model.items():
        for action, branches in choices.items():
            for probability, following, amounts in branches:
                yield [state, action, plain(probability), following, *map(plain, amounts)]


# --- coffee ----------------------------------------------------------------------------------------------------------

ROASTERS = (
    "Aunt Odile's", "Foxglove & Daughter", "Marmot Lane", "Patient Kettle", "Pepperhill",
    "Seven Umbrellas", "Slow Harbour", "Third Lantern", "Tin Whistle Yard", "Wednesday Owl",
)  # fmt: skip
LOTS = (
    "Amber", "Bluebell", "Cedar", "Chestnut", "Cinder", "Clover", "Comet", "Dusk", "Ember", "Fern", "Finch", "Gale",
    "Hazel", "Heron", "Ivy", "Juniper", "Lark", "Linden", "Maple", "Meadow", "Mistral", "Moss", "Nettle", "Orchard",
    "Otter", "Pebble", "Plum", "Quince", "Raven", "Rowan", "Saffron", "Sorrel", "Swift", "Tansy", "Velvet", "Willow",
)  # fmt: skip
PROCESSES = ("washed", "honey", "natural")


@dataclass(frozen=True)
class Origin:
    """A region: how fragrant and heavy its coffee tends to be (-1 to 1), what it adds to the price, its robusta."""

    name: str
    fragrance: float
    weight: float
    premium: float
    robusta: float = 0.0


ORIGINS = (
    Origin("Antigua", 0.2, 0.2, 3),
    Origin("Cerrado", -0.3, 0.4, -3, robusta=0.1),
    Origin("Chiapas", -0.1, 0.0, -1),
    Origin("Dak Lak", -0.9, 0.8, -6, robusta=0.8),
    Origin("Gayo", -0.2, 0.9, 1, robusta=0.1),
    Origin("Guji", 0.9, -0.4, 5),
    Origin("Huila", 0.3, 0.0, 1),
    Origin("Kodagu", -0.6, 0.6, -4, robusta=0.5),
    Origin("Nyeri", 0.7, 0.1, 6),
    Origin("Sidama", 0.8, -0.5, 3),
    Origin("Tarrazu", 0.3, -0.1, 2),
    Origin("Volcan", 1.0, -0.3, 14),
)


def coffee(count: int = 300) -> list[list[str]]:
    """Return the beans: better growing is paid for, and what the roast and robusta give to one taste they take away."""
    luck = random.Random(20240)

    def noise(size: float) -> float:
        return size * (luck.random() + luck.random() + luck.random() - 1.5)  # only .random() is the same everywhere

    def points(amount: float) -> str:
        return f"{min(max(amount, 0.5), 10.0):.1f}"

    def pick(options: Sequence[T]) -> T:
        return options[int(luck.random() * len(options))]

    beans: dict[str, list[str]] = {}
    tastes = set()
    while len(beans) < count:
        origin, process = pick(ORIGINS), pick(PROCESSES)
        name = f"{pick(ROASTERS)} {origin.name} {pick(LOTS)}"
        care = luck.random()  # how well it was grown, sorted and dried
        roast = min(max(0.5 + noise(0.55), 0.0), 1.0)  # 0 is light, 1 is dark
        robusta = origin.robusta * luck.random()
        fruit = 0.5 * PROCESSES.index(process)  # a natural keeps the sweetness of the fruit
        taste = [
            points(3.6 + 4.2 * roast + 1.6 * origin.weight + 0.6 * fruit + 0.8 * care + noise(0.9)),  # body
            points(5.0 + 2.8 * care + 1.6 * origin.fragrance - 2.6 * roast - 2.0 * robusta + noise(0.9)),  # aroma
            points(2.6 + 3.4 * roast + 4.0 * robusta + 1.0 * care - 0.6 * fruit + noise(0.9)),  # crema
            points(4.2 + 2.6 * care + 1.8 * fruit - 7 * (roast - 0.45) ** 2 - 2.6 * robusta + noise(0.9)),  # sweetness
        ]
        price = 17 + 19 * care**2 + origin.premium + 2 * fruit - 6 * robusta + noise(4)
        if name not in beans and tuple(taste) not in tastes:
            tastes.add(tuple(taste))
            degree = "light" if roast < 0.38 else "medium" if roast < 0.62 else "dark"
            beans[name] = [name, *taste, f"{round(max(price, 9.0) * 2) / 2:.2f}", origin.name, process, degree]
    return [beans[name] for name in sorted(beans)]


# --- vacuum ----------------------------------------------------------------------------------------------------------

#   desk ---- bookshelf     | toy box ------ cot   |
#                 |         |    |                 |
#   front door - study door - nursery door - linen cupboard - bathroom
#      |                                        |                |
#     sofa ------ rug          |          kitchen table      back door
#                  |           |                |                |
#                plant ---- dining chairs ---- DOCK ---------- pantry
PLAN = (
    ("desk", "bookshelf", "toy box", "cot", None),
    ("front door", "study door", "nursery door", "linen cupboard", "bathroom"),
    ("sofa", "rug", None, "kitchen table", "back door"),
    (None, "plant", "dining chairs", "dock", "pantry"),
)
DOORS = (
    ("desk", "bookshelf"), ("bookshelf", "study door"), ("front door", "study door"), ("study door", "nursery door"),
    ("nursery door", "linen cupboard"), ("nursery door", "toy box"), ("toy box", "cot"), ("front door", "sofa"),
    ("sofa", "rug"), ("rug", "plant"), ("plant", "dining chairs"), ("dining chairs", "dock"),
    ("linen cupboard", "kitchen table"), ("kitchen table", "dock"), ("linen cupboard", "bathroom"),
    ("bathroom", "back door"), ("back door", "pantry"), ("pantry", "dock"),
)  # fmt: skip
CELL = 1.5  # metres
UNIT = 3  # Wh that one unit of the battery holds, and that one move takes
BATTERY = 16  # units
DIRT = {"rug": 24, "table": 18, "toys": 14}  # grams
LIES_AT = {"rug": "rug", "table": "kitchen table", "toys": "toy box"}
HEARD = {"nursery door": 4, "linen cupboard": 3, "bathroom": 3, "toy box": 4, "cot": 5}  # minutes
BUMP = {"kitchen table": 0.3, "dining chairs": 0.3, "plant": 0.1, "toy box": 0.2, "sofa": 0.05}  # chance on the way in
CAT = 0.2  # chance that the cat lies in the way to the rug
LIFTS = {"gently": 0.6, "at full power": 0.95}  # chance that a place is clean afterwards
HEARD_VACUUMING = {"rug": (0, 1), "table": (1, 3), "toys": (5, 10)}  # minutes, gently and at full power
FRINGE = 0.2  # chance that full power swallows the fringe of the rug


@dataclass(frozen=True)
class Robot:
    """Where the robot is, what its battery holds, and what is still dirty."""

    cell: str
    battery: int
    dirt: tuple[str, ...]

    def __str__(self) -> str:
        dirty = " and ".join(self.dirt) or "nothing"
        return f"{self.cell} {self.battery}/{BATTERY} dirty {dirty}"

    def spend(self, units: int) -> Robot:
        """Return the robot with so much less in its battery."""
        return replace(self, battery=self.battery - units)


def parse(state: str) -> Robot:
    """Return the robot that a state is the name of."""
    place, dirty = state.split(" dirty ")
    cell, battery = place.rsplit(" ", 1)
    return Robot(cell, int(battery.split("/")[0]), tuple(name for name in dirty.split(" and ") if name != "nothing"))


def branch(probability: float, before: Robot, after: Robot, dirt: float, noise: float, mishaps: float) -> Branch:
    """Return a branch; a robot whose battery is empty before it is home has to be carried there."""
    energy = UNIT * (before.battery - after.battery)
    if after.cell == "dock":
        return probability, "docked", (dirt, energy, noise, mishaps)
    if after.battery == 0:
        return probability, "stranded", (dirt, energy, noise, mishaps + 1)
    return probability, str(after), (dirt, energy, noise, mishaps)


def move(robot: Robot, cell: str) -> list[Branch]:
    """Return what can happen on the way to a neighbouring cell."""
    there, noise = replace(robot, cell=cell).spend(1), HEARD.get(cell, 0)
    if cell == "rug" and robot.battery > 1:
        return [branch(1 - CAT, robot, there, 0, noise, 0), branch(CAT, robot, robot.spend(1), 0, noise, 0)]
    if cell in BUMP and robot.battery > 1:  # getting free again takes another unit
        chance = BUMP[cell]
        return [branch(1 - chance, robot, there, 0, noise, 0), branch(chance, robot, there.spend(1), 0, noise, 1)]
    return [branch(1, robot, there, 0, noise, 0)]


def vacuum_up(robot: Robot, pile: str, how: str) -> list[Branch]:
    """Return what can happen when the robot works on the dirt where it stands."""
    power = 1 if how == "gently" else 2
    chance, noise = LIFTS[how], HEARD_VACUUMING[pile][power - 1]
    same = robot.spend(power)
    clean = replace(same, dirt=tuple(name for name in same.dirt if name != pile))
    if pile == "rug" and how == "at full power":
        return [
            branch(chance - FRINGE, robot, clean, DIRT[pile], noise, 0),
            branch(FRINGE, robot, clean.spend(1), DIRT[pile], noise, 1),
            branch(1 - chance, robot, same, 0, noise, 0),
        ]
    return [branch(chance, robot, clean, DIRT[pile], noise, 0), branch(1 - chance, robot, same, 0, noise, 0)]


def vacuum_choices(state: str) -> Choices:
    """Return what the robot can do."""
    if state in ("docked", "stranded"):
        return {}
    robot = parse(state)
    choices: Choices = {}
    for pile in robot.dirt:
        if LIES_AT[pile] == robot.cell and robot.battery > 1:  # the last unit is for moving
            choices["vacuum gently"] = vacuum_up(robot, pile, "gently")
            if robot.battery > 2:
                choices["vacuum at full power"] = vacuum_up(robot, pile, "at full power")
    for pair in DOORS:
        if robot.cell in pair:
            cell = pair[1 - pair.index(robot.cell)]
            choices["dock" if cell == "dock" else f"go to the {cell}"] = move(robot, cell)
    return choices


def vacuum() -> dict[str, Choices]:
    """Return the robot's morning, from the bookshelf to the dock."""
    return explore(str(Robot("bookshelf", BATTERY, tuple(DIRT))), vacuum_choices)


def vacuum_places(states: Iterable[str]) -> Iterable[list[str]]:
    """Yield where every state is on the floor plan, in metres from its south-west corner."""
    at = {
        cell: (CELL * column, CELL * (len(PLAN) - 1 - row))
        for row, cells in enumerate(PLAN)
        for column, cell in enumerate(cells)
        if cell
    }
    at |= {"docked": at["dock"], "stranded": (0.0, 0.0)}  # a corner where nothing stands
    for state in states:
        x, y = at[state if state in at else parse(state).cell]
        yield [state, plain(x), plain(y)]


# --- portfolio -------------------------------------------------------------------------------------------------------

START, STEP, LOWEST, HIGHEST = 10_000, 0.03, -8, 12  # the rungs of wealth: 10 000 EUR * 1.03 ** rung
LOCKED = 3  # quarters that property stays locked after the one in which it was bought
MARKETS = {"calm": {"calm": 0.85, "stormy": 0.15}, "stormy": {"calm": 0.4, "stormy": 0.6}}


@dataclass(frozen=True)
class Investment:
    """What one quarter brings: chances of climbing rungs (by market), months at hand, fees."""

    climbs: dict[str, dict[int, float]]
    months: float
    fee: float = 0.0  # EUR
    fee_share: float = 0.0  # of the wealth


INVESTMENTS = {
    "keep it in the bank": Investment({"calm": {0: 0.9, -1: 0.1}, "stormy": {0: 0.85, -1: 0.15}}, 3, fee=9),
    "hold government bonds": Investment(
        {"calm": {1: 0.2, 0: 0.7, -1: 0.1}, "stormy": {1: 0.3, 0: 0.6, -1: 0.1}}, 2.5, fee=3
    ),
    "hold a balanced fund": Investment(
        {"calm": {1: 0.5, 0: 0.35, -1: 0.15}, "stormy": {1: 0.3, 0: 0.35, -1: 0.25, -2: 0.1}}, 2, fee_share=0.0025
    ),
    "hold stocks": Investment(
        {
            "calm": {2: 0.35, 1: 0.3, 0: 0.15, -1: 0.15, -2: 0.05},
            "stormy": {2: 0.25, 1: 0.15, 0: 0.1, -1: 0.2, -3: 0.3},
        },
        1.5,
        fee_share=0.001,
    ),
    "buy property": Investment(
        {"calm": {1: 0.35, 0: 0.65}, "stormy": {1: 0.25, 0: 0.72, -1: 0.03}}, 0, fee_share=0.015
    ),
}
WAIT = replace(INVESTMENTS["buy property"], fee_share=0.0)


def wealth(rung: int) -> int:
    """Return the EUR of a rung, in whole tens."""
    return round(START * (1 + STEP) ** rung / 10) * 10


def holding(rung: int, market: str, locked: int) -> str:
    """Return the name of a state."""
    lock = f" locked for {locked} quarter{'s' * (locked > 1)}" if locked else ""
    return f"{wealth(rung)} EUR in a {market} market{lock}"


def invest(investment: Investment, rung: int, market: str, locked: int) -> list[Branch]:
    """Return what one quarter can bring; nobody falls from the lowest rung or climbs above the highest."""
    chances: dict[int, float] = {}
    for climb, chance in investment.climbs[market].items():
        after = min(max(rung + climb, LOWEST), HIGHEST)
        chances[after] = chances.get(after, 0.0) + chance
    fee = round(investment.fee + investment.fee_share * wealth(rung), 2)
    return [
        (
            chance * likely,
            holding(after, following, locked),
            (wealth(after) - wealth(rung), max(wealth(rung) - wealth(after), 0), investment.months, fee),
        )
        for after, chance in chances.items()
        for following, likely in MARKETS[market].items()
    ]


def portfolio() -> dict[str, Choices]:
    """Return the investor's quarters."""
    meaning = {
        holding(rung, market, locked): (rung, market, locked)
        for rung in range(LOWEST, HIGHEST + 1)
        for market in MARKETS
        for locked in range(LOCKED + 1)
    }

    def choices(state: str) -> Choices:
        rung, market, locked = meaning[state]
        if locked:
            return {"wait": invest(WAIT, rung, market, locked - 1)}
        return {
            action: invest(investment, rung, market, LOCKED if action == "buy property" else 0)
            for action, investment in INVESTMENTS.items()
        }

    model = explore(holding(0, "calm", 0), choices)
    first, *others = model
    others.sort(key=lambda state: (meaning[state][2], abs(meaning[state][0]), meaning[state]))
    return {state: model[state] for state in [first, *others]}


def main(folder: Path = EXAMPLES) -> None:
    """Write the tables."""
    transitions = ["state", "action", "probability", "next"]
    names = ["name", "body", "aroma", "crema", "sweetness", "price", "origin", "process", "roast"]
    write(folder / "coffee.csv", names, coffee())
    rooms = vacuum()
    write(folder / "vacuum.csv", [*transitions, "dirt", "energy", "noise", "mishaps"], rows_of(rooms))
    write(folder / "vacuum.places.csv", ["state", "x", "y"], vacuum_places(rooms))
    write(folder / "portfolio.csv", [*transitions, "gain", "losses", "liquidity", "fees"], rows_of(portfolio()))


if __name__ == "__main__":
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("folder", nargs="?", type=Path, default=EXAMPLES, help="where to write the tables")
    main(reader.parse_args().folder)
