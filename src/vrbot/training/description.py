"""What a run is: the plan that decides its weights, and the circumstances it was started in, as files."""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
import yaml

from vrbot.config import Config
from vrbot.dialogue.corpus import Corpus
from vrbot.dialogue.supervision import LabelSelection, select_labels
from vrbot.errors import IntegrityError, UsageError
from vrbot.model.learned import num_learned

CONFIG, LABELS, RUN = "config.yaml", "labels.json", "run.json"


@dataclass(frozen=True)
class LabelFractions:
    """The share of dialogues whose labels are used; `category` follows `action` unless given."""

    state: float = 1.0
    action: float = 1.0
    category: float | None = None

    def select(self, session_ids: tuple[str, ...], seed: int) -> LabelSelection:
        return select_labels(session_ids, seed, state=self.state, action=self.action, category=self.category)


@dataclass(frozen=True)
class RunPlan:
    """Everything that decides the weights of a run, besides the programs."""

    model: str
    corpus: Path
    config: Config
    seed: int = 1
    labels: LabelFractions = LabelFractions()

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise UsageError(f"the seed must be 0 or more, got {self.seed}")


@dataclass(frozen=True)
class RunDescription:
    """A plan, the corpus as it was, and where and with what the run was started."""

    plan: RunPlan
    corpus_fingerprint: str
    corpus_sha256: str
    measure: str
    parameters: int
    threads: int
    environment: Mapping[str, Any]

    @classmethod
    def of(cls, plan: RunPlan, corpus: Corpus, model: torch.nn.Module, measure: str) -> RunDescription:
        """The description of a run that starts here and now."""
        return cls(
            replace(plan, corpus=plan.corpus.resolve()),
            corpus.fingerprint,
            corpus_digest(corpus),
            measure,
            num_learned(model),
            torch.get_num_threads(),
            _environment(),
        )

    def files(self, selection: LabelSelection) -> dict[str, bytes]:
        """As the files a run folder begins with."""
        content = asdict(replace(self, environment=dict(self.environment)))
        plan = content.pop("plan")
        del plan["config"]
        run = {"schema": 1, **plan, "corpus": str(self.plan.corpus), **content}
        settings = yaml.safe_dump(self.plan.config.model_dump(), sort_keys=False, allow_unicode=True)
        return {CONFIG: settings.encode(), LABELS: _json(asdict(selection)), RUN: _json(run)}

    @classmethod
    def from_files(cls, files: Mapping[str, bytes]) -> RunDescription:
        """The reverse of `files`."""
        try:
            run = json.loads(files[RUN])
            labels = LabelFractions(**run["labels"])
            names = ("corpus_fingerprint", "corpus_sha256", "measure", "parameters", "threads", "environment")
            config = Config.parse(yaml.safe_load(files[CONFIG]))
            plan = RunPlan(run["model"], Path(run["corpus"]), config, run["seed"], labels)
            return cls(plan, **{name: run[name] for name in names})
        except (KeyError, TypeError, ValueError) as error:
            raise IntegrityError(
                f"{RUN} is not that of a run ({error!r}): read it with the version that wrote it"
            ) from error


def corpus_digest(corpus: Corpus) -> str:
    """A hash over every file of a corpus."""
    return hashlib.sha256(corpus.manifest.text().encode()).hexdigest()


def plan_differences(run: RunPlan, asked: RunPlan) -> list[str]:
    """What is asked for but is not what the run has, as sentences; the place of the corpus may change."""
    pairs: dict[str, tuple[Any, Any]] = {"model": (run.model, asked.model), "seed": (run.seed, asked.seed)}
    for name, value in asdict(run.labels).items():
        pairs[f"{name} labels"] = (value, getattr(asked.labels, name))
    theirs = asked.config.model_dump()
    for section, fields in run.config.model_dump().items():
        pairs |= {f"{section}.{name}": (value, theirs[section][name]) for name, value in fields.items()}
    return [f"{name} is {has}, not {wanted}" for name, (has, wanted) in pairs.items() if has != wanted]


def _environment() -> dict[str, Any]:
    return {
        "version": _version(),
        "commit": _commit(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "platform": platform.platform(),
        "machine": platform.machine(),
    }


def _version() -> str | None:
    try:
        return version("vrbot")
    except PackageNotFoundError:
        return None


def _commit() -> str | None:
    """The commit that last changed the sources, when they stand in a git repository; "+changed" behind it where they
    differ. Later commits of documents or tests do not make two runs incomparable."""
    commit = _git("log", "-1", "--format=%H", "--", ".")
    return f"{commit}+changed" if commit and _git("status", "--porcelain", "--", ".") else commit or None


def _git(*command: str) -> str:
    """What git says of the package's own folder; nothing where it cannot be asked."""
    sources = Path(__file__).parents[1]
    try:
        done = subprocess.run(
            ["git", "-C", str(sources), *command], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _json(content: Any) -> bytes:
    return (json.dumps(content, ensure_ascii=False, indent=1) + "\n").encode()
