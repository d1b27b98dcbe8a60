"""Blind evaluation: each rater sees the systems of an item in an order of their own, and rates places, not names."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, func, select

from vrbot.serving.actors import EXPORT, RATE, Actor
from vrbot.serving.problems import InvalidInputError, NotFoundError, RefusedError
from vrbot.serving.schema import rating_orders, ratings
from vrbot.serving.store import Store
from vrbot.serving.texts import canonical_json, checked_name

SCALES = {"fluency": (1, 5), "knowledge": (1, 5), "quality": (1, 5), "preference": (-1, 1), "explained": (0, 1)}
"""Measure -> lowest and highest value: the paper's Flu, KC and EQ; of two places 1 prefers the one that is rated and -1
the other; 0/1 whether a keyword is explained."""
PREFERENCE = "preference"
"""Speaks of both places at once: of several the last counts, whichever place it names."""
SEAT = "seat"
"""The item under which it is kept which rater of a study somebody is."""


@dataclass(frozen=True)
class Rating:
    """One judgement with the name of the system it was about; of several the highest number counts."""

    campaign: str
    item: str
    rater: str
    system: str
    measure: str
    value: int
    number: int


class Ratings:
    """Orders and judgements."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def seat(self, actor: Actor, campaign: str, seats: Sequence[str]) -> str:
        """Which of a study's raters the actor is: the first that is free, and from then on always the same."""
        actor.must(RATE)
        with self._store.writing("rater seated", actor) as writer:
            taken = _seats(writer.connection, campaign)
            if actor.id in taken:
                return taken[actor.id]
            free = [checked_name(seat, "seat") for seat in seats if seat not in taken.values()]
            if not free:
                raise RefusedError(f"all {len(seats)} raters of this study have begun: draw one for more raters")
            values = {"campaign": campaign, "item": SEAT, "rater": actor.id, "systems": canonical_json(free[:1])}
            writer.insert(rating_orders, made_at=writer.now, **values)
            return free[0]

    def order(
        self, actor: Actor, campaign: str, item: str, systems: Sequence[str], chance: random.Random | None = None
    ) -> str:
        """The id of the order in which this rater sees the systems; drawn once, then always the same.

        Without `chance` it is the order given: that of a study in which it was drawn before.
        """
        actor.must(RATE)
        checked_name(campaign, "campaign")
        checked_name(item, "item")
        names = [checked_name(name, "system") for name in systems]
        if not names or len(set(names)) != len(names):
            raise InvalidInputError("an item needs systems with different names")
        with self._store.writing("rating order drawn", actor) as writer:
            query = select(rating_orders.c.id, rating_orders.c.systems).where(
                rating_orders.c.campaign == campaign, rating_orders.c.item == item, rating_orders.c.rater == actor.id
            )
            there = writer.connection.execute(query).one_or_none()
            if there is not None:
                if sorted(json.loads(there.systems)) != sorted(names):
                    raise InvalidInputError("the item has other systems than when it was first shown: rename it")
                return str(there.id)
            if chance is not None:
                chance.shuffle(names)
            values = {"campaign": campaign, "item": item, "rater": actor.id, "systems": canonical_json(names)}
            return str(writer.insert(rating_orders, made_at=writer.now, **values)["id"])

    def systems(self, actor: Actor, order: str) -> tuple[str, ...]:
        """The systems in the order drawn, to lay out their replies; never to be shown to the rater."""
        actor.must(RATE)
        query = select(rating_orders.c.systems).where(rating_orders.c.id == order, rating_orders.c.rater == actor.id)
        with self._store.reading() as connection:
            found = connection.execute(query).scalar_one_or_none()
        if found is None:
            raise NotFoundError("there is no such order of yours: ask for one first")
        return tuple(json.loads(found))

    def rate(self, actor: Actor, order: str, measure: str, position: int, value: int) -> None:
        """A judgement of the system at a place of the order (first is 0); the same as the last one is no new one."""
        systems = self.systems(actor, order)
        if measure not in SCALES:
            raise InvalidInputError(f"{str(measure)[:20]!r} is not a measure: use one of {', '.join(SCALES)}")
        lowest, highest = SCALES[measure]
        if not isinstance(value, int) or not lowest <= value <= highest:
            raise InvalidInputError(f"{measure} is a whole number from {lowest} to {highest}")
        if not isinstance(position, int) or not 0 <= position < len(systems):
            raise InvalidInputError(f"position must be 0 to {len(systems) - 1}")
        at_place = ratings.c.position == position
        with self._store.writing("rating given", actor) as writer:
            given = select(ratings.c.position, ratings.c.value).where(ratings.c.rating_order == order)
            given = given.where(ratings.c.measure == measure).order_by(ratings.c.number.desc())
            last = writer.connection.execute(given if measure == PREFERENCE else given.where(at_place)).first()
            if last is not None and tuple(last) == (position, int(value)):
                return
            counted = select(func.coalesce(func.max(ratings.c.number), 0)).where(ratings.c.rating_order == order)
            number = writer.connection.execute(counted).scalar_one() + 1
            values = {"rating_order": order, "number": number, "measure": measure, "position": position}
            writer.insert(ratings, value=int(value), made_at=writer.now, **values)

    def mine(self, actor: Actor, campaign: str) -> list[Rating]:
        """The actor's own judgements that count."""
        actor.must(RATE)
        return counting(self._given(campaign, actor.id))

    def everybodys(self, actor: Actor, campaign: str) -> list[Rating]:
        """All judgements that count: for figures over all raters, never to be shown one by one."""
        actor.must(RATE)
        return counting(self._given(campaign))

    def seats(self, actor: Actor, campaign: str) -> dict[str, str]:
        """Which of a study's raters each user is."""
        if not actor.may(EXPORT):
            actor.must(RATE)
        with self._store.reading() as connection:
            return _seats(connection, campaign)

    def export(self, actor: Actor, campaign: str) -> list[Rating]:
        """Every judgement of a campaign, names uncovered."""
        actor.must(EXPORT)
        return self._given(campaign)

    def _given(self, campaign: str, rater: str | None = None) -> list[Rating]:
        query = select(ratings, rating_orders).join(rating_orders, rating_orders.c.id == ratings.c.rating_order)
        query = query.where(rating_orders.c.campaign == campaign)
        if rater is not None:
            query = query.where(rating_orders.c.rater == rater)
        query = query.order_by(rating_orders.c.item, rating_orders.c.rater, ratings.c.number)
        with self._store.reading() as connection:
            return [_rating(row) for row in connection.execute(query)]


def counting(given: Sequence[Rating]) -> list[Rating]:
    """Of several judgements of one thing by one rater the last, in the order given."""
    last = {(each.rater, each.item, each.system, each.measure): each for each in given}
    return list(last.values())


def _seats(connection: Connection, campaign: str) -> dict[str, str]:
    query = select(rating_orders.c.rater, rating_orders.c.systems)
    query = query.where(rating_orders.c.campaign == campaign, rating_orders.c.item == SEAT)
    return {row.rater: json.loads(row.systems)[0] for row in connection.execute(query)}


def _rating(row: Row[Any]) -> Rating:
    system = json.loads(row.systems)[row.position]
    return Rating(row.campaign, row.item, row.rater, system, row.measure, row.value, row.number)
