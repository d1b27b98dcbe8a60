"""MEP and MER: are the keywords of an action span explained, and do explained keywords account for the response?

A predicted keyword is explained if it is in the predicted state, or was said in the dialogue before the reply, or is
reached by a path in the knowledge the action rests on (`reach`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vrbot.evaluation.pooling import PooledScore, mean_score
from vrbot.evaluation.turns import Evidence, ScoredTurn
from vrbot.knowledge.retrieval import Subgraph

_NO_EVIDENCE = Evidence(frozenset(), frozenset())


def reached_entities(subgraph: Subgraph) -> frozenset[int]:
    """Entities at the end of a path of at least one edge from a seed, the links among seeds not counted.

    Retrieval keeps a node only together with a walk to it, so these are the nodes that are no seeds.
    """
    return frozenset(subgraph.nodes[subgraph.hops > 0].tolist())


def explainability_scores(turns: Sequence[ScoredTurn], num_entities: int | None = None) -> dict[str, PooledScore]:
    """MEP and MER over turns with evidence and a predicted span, and what MEP is made of.

    `explained_by_state`, `_context`, `_path` are shares of keywords like MEP and overlap each other; `explained_reply`
    is MER for the entities of the system's own reply; `mep_by_chance` is the MEP of keywords drawn blindly from all
    `num_entities` entities.
    """
    scores = {
        "mep": _mean(turns, lambda turn: _share(_keywords(turn) & _explanation(turn), _keywords(turn))),
        "mer": _mean(turns, lambda turn: _share(_explained(turn) & turn.reference_entities, turn.reference_entities)),
        "explained_by_state": _mean(turns, lambda turn: _share(_keywords(turn) & _state(turn), _keywords(turn))),
        "explained_by_context": _mean(
            turns, lambda turn: _share(_keywords(turn) & _evidence(turn).context, _keywords(turn))
        ),
        "explained_by_path": _mean(
            turns, lambda turn: _share(_keywords(turn) & _evidence(turn).reached, _keywords(turn))
        ),
        "explained_reply": _mean(
            turns, lambda turn: _share(_explained(turn) & turn.reply_entities, turn.reply_entities)
        ),
    }
    if num_entities:
        scores["mep_by_chance"] = _mean(
            turns, lambda turn: len(_explanation(turn)) / num_entities if _keywords(turn) else None
        )
    return scores


def _mean(turns: Sequence[ScoredTurn], share: Callable[[ScoredTurn], float | None]) -> PooledScore:
    return mean_score([None if turn.evidence is None or turn.prior.keywords is None else share(turn) for turn in turns])


def _share(part: frozenset[int], whole: frozenset[int]) -> float | None:
    return len(part) / len(whole) if whole else None


def _keywords(turn: ScoredTurn) -> frozenset[int]:
    return frozenset(turn.prior.keywords or ())


def _state(turn: ScoredTurn) -> frozenset[int]:
    return frozenset(turn.prior.state or ())


def _evidence(turn: ScoredTurn) -> Evidence:
    return turn.evidence or _NO_EVIDENCE


def _explanation(turn: ScoredTurn) -> frozenset[int]:
    """Everything that would count as explained at this turn."""
    return _state(turn) | _evidence(turn).context | _evidence(turn).reached


def _explained(turn: ScoredTurn) -> frozenset[int]:
    return _keywords(turn) & _explanation(turn)
