"""`vrbot doctor`: what this machine has, what it lacks, and how to put that right."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from vrbot.cli.printing import say, say_json

TORCH_VERSION = "2.13.0"
GIGABYTE = 2**30
OPTIONAL_PACKAGES = {
    "transformers": ("pretrained encoders", "pip install 'vrbot[bert]'"),
    "dask": ("preparing a corpus on many machines", "pip install 'vrbot[dask]'"),
    "jieba": ("segmenter jieba", "pip install 'vrbot[jieba]'"),
    "spacy_pkuseg": ("segmenter pkuseg", "pip install 'vrbot[pkuseg]'"),
    "psycopg": ("PostgreSQL store", "pip install 'psycopg[binary]'"),
}
OPTIONAL_PROGRAMS = {
    "chromium": ("browser tests", "apt-get install chromium"),
    "postgres": ("PostgreSQL tests", "apt-get install postgresql"),
}


@dataclass(frozen=True)
class Check:
    """One thing looked at: what was found, and the way out if it is not good."""

    name: str
    good: bool
    required: bool
    found: str
    fix: str = ""


def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print the checks as JSON.")] = False) -> None:
    """Check this machine and say how to fix what is missing.

    Exit code 0 if every required part is good, else 1.

    \b
    Example:
        vrbot doctor
        vrbot doctor --json
    """
    checks = examine()
    healthy = all(check.good for check in checks if check.required)
    if as_json:
        say_json({"healthy": healthy, "checks": [asdict(check) for check in checks]})
    else:
        for check in checks:
            say(describe(check))
        say("all required parts are good" if healthy else "a required part is missing: see the lines marked FAIL")
    raise typer.Exit(0 if healthy else 1)


def describe(check: Check) -> str:
    """One line for people; the way out stands behind the arrow."""
    mark = "ok  " if check.good else ("FAIL" if check.required else "none")
    way_out = "" if check.good or not check.fix else f"  ->  {check.fix}"
    return f"{mark}  {check.name}: {check.found}{way_out}"


def examine() -> list[Check]:
    """Every check, the required ones first."""
    checks = [_python(), _torch(), _clinic(), _threads(), _memory(), _disk(Path.cwd()), _chinese_font()]
    checks += [_package(name, use, fix) for name, (use, fix) in OPTIONAL_PACKAGES.items()]
    checks += [_program(name, use, fix) for name, (use, fix) in OPTIONAL_PROGRAMS.items()]
    return sorted(checks, key=lambda check: not check.required)


def _python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    good = (3, 11) <= sys.version_info[:2] < (3, 13)
    return Check("Python", good, True, version, "install Python 3.11 or 3.12 and run make setup")


def _torch() -> Check:
    fix = f"pip install torch=={TORCH_VERSION}"
    try:
        found = importlib.import_module("torch").__version__
    except ImportError as error:
        return Check("torch", False, True, f"cannot be imported ({error})", fix)
    return Check("torch", found.split("+")[0] == TORCH_VERSION, True, found, fix)


def _clinic() -> Check:
    """The embedded clinic's data, read to the end."""
    name, fix = "clinic data", "install vrbot again: make clean setup"
    try:
        world = importlib.import_module("vrbot.clinic.world").load_world()
        num_triples = [len(world.triples(language)) for language in ("zh", "en")]
    except Exception as error:  # whatever is wrong with the files, the doctor reports it and goes on
        return Check(name, False, True, f"cannot be read ({type(error).__name__}: {error})", fix)
    found = f"{len(world.entities)} entities, {len(world.diseases)} diseases, {min(num_triples)} triples"
    return Check(name, min(num_triples) > 0, True, found, fix)


def _threads() -> Check:
    policy = os.environ.get("OMP_WAIT_POLICY", "not set")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = os.environ.get("OMP_NUM_THREADS", "not set")
    found = f"{cores} cores, OMP_NUM_THREADS {limit}, OMP_WAIT_POLICY {policy}"
    return Check("CPU", policy.upper() == "PASSIVE", False, found, "export OMP_WAIT_POLICY=PASSIVE")


def _memory() -> Check:
    import psutil

    available = psutil.virtual_memory().available / GIGABYTE
    return Check("memory", available >= 4, False, f"{available:.1f} GB free", "4 GB free are enough for the clinic")


def _disk(folder: Path) -> Check:
    free = shutil.disk_usage(folder).free / GIGABYTE
    return Check("disk", free >= 2, False, f"{free:.1f} GB free here", "make at least 2 GB free")


def _chinese_font() -> Check:
    found = find_chinese_font()
    fix = "apt-get install fonts-noto-cjk (plots show boxes instead of Chinese characters)"
    return Check("Chinese font", found is not None, False, found or "none found", fix)


def find_chinese_font() -> str | None:
    """The family name of an installed font with Chinese characters, asked of fontconfig, else of matplotlib."""
    if shutil.which("fc-list"):
        answer = subprocess.run(["fc-list", ":lang=zh", "family"], capture_output=True, text=True, check=False)
        families = sorted(line.split(",")[0] for line in answer.stdout.splitlines() if line.strip())
        return families[0] if families else None
    from matplotlib import font_manager

    marks = ("CJK", "WenQuanYi", "SimHei", "SimSun", "YaHei", "PingFang", "Heiti", "Source Han")
    names = {entry.name for entry in font_manager.fontManager.ttflist}
    return next((name for name in sorted(names) if any(mark in name for mark in marks)), None)


def _package(name: str, use: str, fix: str) -> Check:
    if importlib.util.find_spec(name) is None:
        return Check(name, False, False, f"not installed (optional: {use})", fix)
    try:
        version = importlib.metadata.version(name.replace("_", "-"))
    except importlib.metadata.PackageNotFoundError:
        version = "version unknown"
    return Check(name, True, False, f"{version} ({use})")


def _program(name: str, use: str, fix: str) -> Check:
    path = find_program(name)
    return Check(name, path is not None, False, path or f"not installed (optional: {use})", fix)


def find_program(name: str, elsewhere: Sequence[Path] | None = None) -> str | None:
    """Where a program is: on the path, or where Debian puts PostgreSQL's servers."""
    beside = sorted(Path("/usr/lib/postgresql").glob("*/bin")) if elsewhere is None else list(elsewhere)
    places = [None, *(str(folder) for folder in reversed(beside))]
    return next((found for place in places if (found := shutil.which(name, path=place))), None)
