"""The knowledge a corpus is prepared with: files of names and triples, brought into one index space."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.preparation_report import KnowledgeCounts
from vrbot.files import sha256_of
from vrbot.knowledge.aliases import DroppedAlias, clean_aliases, read_aliases
from vrbot.knowledge.assembly import assemble_knowledge
from vrbot.knowledge.entities import Inventory, VocabularyFile, read_entities, read_lexicon, read_vocabulary
from vrbot.knowledge.graph import Graph
from vrbot.knowledge.kinds import infer_types
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
