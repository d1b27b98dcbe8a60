"""The knowledge a corpus is prepared with: files of names and triples, brought into one index space."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.preparation_report import KnowledgeCounts
from vrbot.dialogue.session import Session, Turn
from vrbot.errors import UsageError
from vrbot.files import sha256_of
from vrbot.knowledge.aliases import DroppedAlias, clean_aliases, read_aliases
from vrbot.knowledge.assembly import assemble_knowledge
from vrbot.knowledge.entities import Inventory, VocabularyFile, read_entities, read_lexicon, read_vocabulary
from vrbot.knowledge.graph import Graph
from vrbot.knowledge.kinds import infer_types
from vrbot.knowledge.linking import Linker
from vrbot.knowledge.triples import Triple, read_triples


@dataclass(frozen=True)
class KnowledgeFiles:
    """Where knowledge comes from; every file may be missing.

    `vocabulary` is in the paper's form (Word,Is_know); it gives words and entities at once.
    """

    graph: Path | None = None
    alias: Path | None = None
    lexicon: Path | None = None
    entities: Path | None = None
    vocabulary: Path | None = None

    def hashes(self) -> dict[str, str]:
        """The SHA-256 of each file there is."""
        return {kind: sha256_of(path) for kind, path in vars(self).items() if path is not None}


@dataclass(frozen=True)
class PreparedKnowledge:
    """Entities and graph, the word list where one was given, and what there is to report."""

    inventory: Inventory
    graph: Graph
    word_list: VocabularyFile | None
    counts: KnowledgeCounts


def gather_knowledge(files: KnowledgeFiles, *, trust_aliases: bool = False) -> PreparedKnowledge:
    """Reads the files, drops aliases that cannot be right (unless they are trusted), assembles inventory and graph."""
    triples = [] if files.graph is None else read_triples(files.graph)
    aliases = {} if files.alias is None else read_aliases(files.alias)
    lexicon = {} if files.lexicon is None else read_lexicon(files.lexicon)
    entities = {} if files.entities is None else read_entities(files.entities)
    word_list = None if files.vocabulary is None else read_vocabulary(files.vocabulary)
    known = () if word_list is None else word_list.entities
    protected = dict.fromkeys((*entities, *(name for names in lexicon.values() for name in names)))
    types = {**dict.fromkeys((*known, *protected), "other"), **infer_types(triples), **entities}
    cleaning = clean_aliases(aliases, types, protected=protected.keys(), trusted=trust_aliases)
    knowledge = assemble_knowledge(triples, cleaning.kept, lexicon, entities, known, trust_aliases)
    inventory = knowledge.inventory
    graph = Graph.from_triples(knowledge.triples, len(inventory), knowledge.relations)
    return PreparedKnowledge(inventory, graph, word_list, _count(triples, inventory, tuple(cleaning.dropped)))


def well_named(
    knowledge: PreparedKnowledge, sessions: Iterable[Session], least: int, least_share: float = 0.0
) -> PreparedKnowledge:
    """What is left of the knowledge when entities are left out that these sessions name less often, or that the labels
    of turns naming them hold in a smaller share (one such turn counts for every entity: few are no evidence)."""
    inventory, linker = knowledge.inventory, Linker(knowledge.inventory.surfaces)
    named, judged, held = np.zeros((3, len(inventory)), dtype=np.int64)
    for turn in (turn for session in sessions for turn in session.turns):
        for text, labels in _labelled_texts(turn):
            mentions = [list(mention.entities) for mention in linker.find(text)]
            for entities in mentions:
                named[entities] += 1
            if labels is not None:
                different = {entity for entities in mentions for entity in entities}
                judged[list(different)] += 1
                held[list(different & {entity for name in labels for entity in inventory.ids_of(name)})] += 1
    kept = np.flatnonzero((named >= least) & (held + 1 >= least_share * (judged + 1))).tolist()
    if not kept:
        raise UsageError(
            f"no entity is named {least} times in training and labelled in {least_share:g} of those turns: lower "
            "--minimum-mentions or --minimum-labelled"
        )
    inventory, graph = inventory.only(kept), knowledge.graph.only(kept)
    counts = replace(knowledge.counts, entities=len(inventory), surfaces=len(inventory.surfaces))
    return replace(knowledge, inventory=inventory, graph=graph, counts=counts)


def _labelled_texts(turn: Turn) -> tuple[tuple[str, Sequence[str] | None], tuple[str, Sequence[str] | None]]:
    """What was said, and the entities that a label gives for it where there is one."""
    keywords = None if turn.action is None else turn.action.keywords
    return (turn.patient, turn.state), (turn.physician, keywords)


def _count(triples: list[Triple], inventory: Inventory, dropped: tuple[DroppedAlias, ...]) -> KnowledgeCounts:
    return KnowledgeCounts(
        triples=len(triples),
        connected_entities=len({name for triple in triples for name in (triple.head, triple.tail)}),
        relations=len({triple.relation for triple in triples}),
        entities=len(inventory),
        surfaces=len(inventory.surfaces),
        aliases_dropped=dropped,
    )


def knowledge_of(corpus: Corpus) -> PreparedKnowledge:
    """The knowledge of a prepared corpus; what its files looked like is taken from its manifest."""
    recorded = corpus.manifest.counts["knowledge"]
    dropped = tuple(DroppedAlias(**row) for row in recorded["aliases_dropped"])
    counts = KnowledgeCounts(**{**recorded, "aliases_dropped": dropped})
    return PreparedKnowledge(corpus.inventory, corpus.graph, None, counts)
