"""How fast a corpus is prepared: megabytes of input per second and core, for reading alone and for the whole.

Example: python -m benchmarks.prepare dialogues/ --graph graph.csv --alias alias.json --repeat 5 --json prepare.json
Without dialogues of your own, invented ones are used.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import tempfile
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from vrbot.dialogue.formats import read_sessions, split_files, write_sessions
from vrbot.dialogue.preparation import PreparationSettings, prepare
from vrbot.dialogue.preparation_knowledge import KnowledgeFiles, gather_knowledge
from vrbot.dialogue.reading import CHUNK_SESSIONS, SessionReader
from vrbot.dialogue.session import Action, Session, Turn

KNOWLEDGE = ("graph", "alias", "lexicon", "entities", "vocabulary")
SUBJECTS = ["我", "孩子", "我妈妈", "家里老人", "他", "同事", "邻居", "这个病人"]
TIMES = ["昨天", "前天晚上", "最近一周", "早上起来", "吃完饭以后", "从去年冬天", "这两三天", "有时候"]
FINDINGS = ["咳嗽", "发烧", "头痛", "肚子不舒服", "没有胃口", "睡不好觉", "嗓子疼", "流鼻涕", "皮肤有红点", "血压偏高"]
ENDINGS = ["，怎么办？", "，需要去医院吗？", "，吃什么药好", "。", "，已经好多了，谢谢医生！", "，检查结果都正常。"]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, nargs="?", help="a folder with train, valid and test (canonical format)")
    parser.add_argument("--repeat", type=int, default=1, help="read the source this many times over")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--json", type=Path)
    for kind in KNOWLEDGE:
        parser.add_argument(f"--{kind}", type=Path)
    options = parser.parse_args(arguments)
    files = KnowledgeFiles(**{kind: getattr(options, kind) for kind in KNOWLEDGE})
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "source"
        source.mkdir()
        sessions = invented(2000) if options.source is None else read_folder(options.source)
        for split, members in sessions.items():
            write_sessions(source / f"{split}.jsonl", repeated(members, options.repeat))
        del sessions  # a heap full of dialogues would slow the collector down, and so the measurement
        result = measure(source, files, Path(scratch) / "corpus", options.workers)
    text = json.dumps(result, indent=2)
    if options.json is not None:
        options.json.write_text(text + "\n", encoding="utf-8")
    print(text)


def measure(source: Path, files: KnowledgeFiles, out: Path, workers: int) -> dict[str, Any]:
    """Reading alone (segmentation, linking, labels), then the whole of prepare, in megabytes of input per second."""
    megabytes = sum(path.stat().st_size for path in source.iterdir()) / 1e6
    reader = SessionReader(gather_knowledge(files).inventory, "rjieba", None)
    reader.read(list(read_sessions(source / "valid.jsonl")))  # loads the dictionaries
    reading = 0.0
    for path in source.iterdir():
        sessions = read_sessions(path)
        while chunk := list(islice(sessions, CHUNK_SESSIONS)):
            started = process_time()
            reader.read(chunk)
            reading += process_time() - started
    clock, started = perf_counter(), process_time()
    report = prepare(source, out, PreparationSettings(knowledge=files), workers=workers)
    seconds, core_seconds = perf_counter() - clock, process_time() - started
    return {
        "megabytes": round(megabytes, 2),
        "dialogues": report.total.dialogues,
        "workers": workers,
        "reading": {"megabytes_per_core_second": round(megabytes / reading, 2)},
        "prepare": {
            "megabytes_per_second": round(megabytes / seconds, 2),
            "megabytes_per_core_second": round(megabytes / core_seconds, 2) if workers == 1 else None,
        },
        "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def read_folder(folder: Path) -> dict[str, list[Session]]:
    return {split: list(read_sessions(path)) for split, path in split_files(folder).items()}


def repeated(sessions: list[Session], times: int) -> Iterator[Session]:
    """The same dialogues several times over, under new ids."""
    for round in range(times):
        for session in sessions:
            yield Session(f"{round}-{session.id}", session.turns, session.extra)


def invented(count: int) -> dict[str, list[Session]]:
    source = random.Random(0)
    sizes = {"train": count, "valid": count // 10, "test": count // 10}
    return {
        split: [Session(f"{split}-{i}", tuple(_turn(source) for _ in range(source.randint(2, 8)))) for i in range(size)]
        for split, size in sizes.items()
    }


def _turn(source: random.Random) -> Turn:
    findings = tuple(source.sample(FINDINGS, 2))
    patient = "".join(_sentence(source) for _ in range(source.randint(1, 3)))
    return Turn(patient, _sentence(source), findings, Action("ask_symptoms", findings[:1]))


def _sentence(source: random.Random) -> str:
    return "".join(source.choice(words) for words in (TIMES, SUBJECTS, FINDINGS, ENDINGS))


if __name__ == "__main__":
    main()
