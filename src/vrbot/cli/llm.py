"""The language model of `vrbot evaluate --llm`: its settings, and what VRBot tells it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vrbot.baselines.llm.prompts import Hint
from vrbot.baselines.llm.settings import EndpointSettings
from vrbot.baselines.llm.system import open_language_model
from vrbot.cli.printing import counting, note
from vrbot.config import parse_assignments
from vrbot.dialogue.corpus import Corpus
from vrbot.errors import UsageError
from vrbot.evaluation.language_models import Conversation, Hinting, measure_language_model
from vrbot.evaluation.measuring import Measured

if TYPE_CHECKING:
    from vrbot.agent.reply import Reply

NAME, INFORMED = "llm", "llm told by VRBot"
CACHE = Path("llm-answers")


@dataclass(frozen=True)
class Asked:
    """An endpoint, where its answers are kept, and whose reasoning it is told (a run's; None: nobody's)."""

    settings: EndpointSettings
    cache: Path
    adviser: Path | None

    @property
    def name(self) -> str:
        return NAME if self.adviser is None else INFORMED

    def facts(self) -> dict[str, Any]:
        """What a result file says about it."""
        return {**self.settings.as_dict(), "told_by": None if self.adviser is None else str(self.adviser)}

    def measure(self, corpus: Corpus, split: str) -> Measured:
        """Its replies to every turn of a split."""
        system = open_language_model(self.settings, self.cache)
        hinting = None if self.adviser is None else hints_from(self.adviser, corpus)
        note(f"asking {self.settings.base_url}; answers are kept in {self.cache}, so that the same call can go on")
        with counting("asking", None) as told:
            return measure_language_model(system, corpus, split, hinting, told)


def asked_endpoint(
    url: str | None, assignments: list[str], cache: Path, run: Path | None, *, informed: bool
) -> Asked | None:
    """What the options say; None where no address is given, and nothing is contacted."""
    if url is None:
        if assignments or informed:
            raise UsageError("--llm-set and --llm-informed need an endpoint: give its address with --llm URL")
        return None
    if informed and run is None:
        raise UsageError("--llm-informed needs the run of a VRBot whose state, action and paths the endpoint is told")
    return Asked(EndpointSettings.of(url, parse_assignments(assignments)), cache, run if informed else None)


def hints_from(run: Path, corpus: Corpus) -> Hinting:
    """What a run's model infers in a conversation, in words."""
    from vrbot.explain.explainer import Explainer

    explainer = Explainer.from_pretrained(run, corpus=corpus.directory)

    def hint(conversation: Conversation) -> Hint:
        return hint_of(explainer.respond(conversation))

    return hint


def hint_of(reply: Reply) -> Hint:
    """State, likeliest category, keywords, and the best path to each keyword."""
    from vrbot.explain.evidence import Evidence

    likely = None if reply.categories is None else max(reply.categories, key=reply.categories.__getitem__)
    found = reply.evidence.keywords if isinstance(reply.evidence, Evidence) else None
    best = [keyword.paths[0] for keyword in found or () if keyword.paths]
    return Hint(
        state=None if reply.state is None else tuple(entity.name for entity in reply.state),
        category=likely,
        keywords=None if reply.keywords is None else tuple(keyword.name for keyword in reply.keywords),
        paths=tuple(_written(path.entities, path.relations) for path in best),
    )


def _written(entities: tuple[str, ...], relations: tuple[str, ...]) -> str:
    steps = [f" -[{relation}]-> {entity}" for relation, entity in zip(relations, entities[1:], strict=True)]
    return entities[0] + "".join(steps)
