"""In which order finished dialogues should be labelled: where the model is unsure, and where much is still unseen.

What a label teaches is carried by the words of its turn. A word (or a pair of words) weighs the root of how unsure the
model is of the turns it stands in, all of them together, so that what is rare or already understood weighs little; with
every labelled turn it stands in, the next one is worth less. The next dialogue is the one whose words weigh most for
each turn to be labelled: long dialogues have no advantage. Nothing is random: equals stand in an order that depends on
the seed and their names only. Letters: S sessions, T turns, F features.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from vrbot.dialogue.splits import Split
from vrbot.errors import UsageError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FEWEST = 2
"""In how many turns a feature must stand to be one that labels can teach."""

SATURATION = 1.0
"""How many labelled turns halve what the next one with the same feature is worth."""


@dataclass(frozen=True, eq=False)
class TurnFeatures:
    """Which features stand in which turns [T, F], and where the turns of each session begin [S + 1]."""

    in_turns: sparse.csr_array
    session_offsets: Ints

    @property
    def turns_per_session(self) -> Ints:
        return np.diff(self.session_offsets)

    def in_sessions(self) -> sparse.csr_array:
        """In how many turns of each session each feature stands [S, F]."""
        sessions, turns = len(self.session_offsets) - 1, self.in_turns.shape[0]
        member = np.repeat(np.arange(sessions), self.turns_per_session)
        belongs = sparse.csr_array((np.ones(turns), (member, np.arange(turns))), shape=(sessions, turns))
        return sparse.csr_array(belongs @ self.in_turns)


def turn_features(split: Split) -> TurnFeatures:
    """Words and pairs of neighbours in what the patient says, of those that stand in at least two turns."""
    tokens, offsets = split.texts.tokens, split.texts.utterance_offsets
    rows, keys = [], []
    for turn in range(split.num_turns):
        words = np.asarray(tokens[offsets[2 * turn] : offsets[2 * turn + 1]], dtype=np.int64)
        found = np.unique(np.concatenate((words, _pairs(words))))
        rows.append(np.full(len(found), turn, dtype=np.int64))
        keys.append(found)
    row = np.concatenate([np.zeros(0, dtype=np.int64), *rows])
    key = np.concatenate([np.zeros(0, dtype=np.int64), *keys])
    different, column, count = np.unique(key, return_inverse=True, return_counts=True)
    kept = count[column] >= FEWEST
    matrix = sparse.csr_array((np.ones(int(kept.sum())), (row[kept], column[kept])), (split.num_turns, len(different)))
    return TurnFeatures(matrix, np.asarray(split.session_offsets, dtype=np.int64))


def _pairs(words: Ints) -> Ints:
    """A number for each pair of neighbours that no word and no other pair has."""
    first, second = words[:-1] + 1, words[1:]
    return (first << 32) | second


def active_order(
    features: TurnFeatures,
    session_ids: Sequence[str],
    uncertainty: Floats,
    labelled: Collection[int] = (),
    *,
    seed: int = 1,
    count: int | None = None,
) -> list[int]:
    """The sessions not yet labelled, best first (only the best `count`); `uncertainty` [T] is 0 or more.

    With the same uncertainty for all turns the order is that of coverage alone: for a start without any model.
    """
    turns, sessions = features.in_turns.shape[0], len(features.session_offsets) - 1
    if len(uncertainty) != turns or len(session_ids) != sessions:
        raise UsageError(f"{len(uncertainty)} uncertainties and {len(session_ids)} names for {turns} turns")
    if not np.isfinite(uncertainty).all() or (len(uncertainty) and uncertainty.min() < 0):
        raise UsageError("how unsure a model is must be a number of 0 or more for every turn")
    waiting = [session for session in range(sessions) if session not in set(labelled)]
    wanted = len(waiting) if count is None else min(count, len(waiting))
    chosen = _greedy(features, uncertainty, sorted(labelled), by_name(session_ids, waiting, seed))
    return [session for session, _ in zip(chosen, range(wanted), strict=False)]


def random_order(session_ids: Sequence[str], labelled: Collection[int] = (), *, seed: int = 1) -> list[int]:
    """The sessions not yet labelled in an order that depends on the seed and their names only."""
    return by_name(session_ids, [one for one in range(len(session_ids)) if one not in set(labelled)], seed)


def by_name(session_ids: Sequence[str], sessions: Sequence[int], seed: int) -> list[int]:
    """Shuffled by a hash of seed and name."""

    def rank(session: int) -> bytes:
        return hashlib.sha256(f"label {seed}\n{session_ids[session]}".encode("utf-8", "surrogatepass")).digest()

    return sorted(sessions, key=rank)


def _greedy(features: TurnFeatures, uncertainty: Floats, labelled: Sequence[int], waiting: list[int]) -> Iterator[int]:
    """Takes the best of those that wait, again and again; of equals the first."""
    in_sessions = features.in_sessions()
    weight = np.sqrt(np.asarray(features.in_turns.T @ uncertainty).ravel())  # [F]
    seen = np.asarray(in_sessions[list(labelled)].sum(axis=0)).ravel() if labelled else np.zeros(len(weight))
    cost = np.maximum(features.turns_per_session, 1)
    present = in_sessions.copy()
    present.data = np.ones_like(present.data)
    left = np.array(waiting, dtype=np.int64)
    while len(left):
        worth = np.asarray(present[left] @ (weight * SATURATION / (SATURATION + seen))).ravel() / cost[left]
        best = int(worth.argmax())
        session = int(left[best])
        yield session
        seen = seen + in_sessions[[session]].toarray().ravel()
        left = np.delete(left, best)
