"""`vrbot chat`: talk to a trained model, and see the state and the action behind every reply."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vrbot.cli.printing import note, say
from vrbot.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from vrbot.agent.chat import Chat
    from vrbot.agent.reply import Keyword, Reply

WORDS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "welcome": "Say what troubles you. /state /undo /new /quit; /help explains. Not medical advice.",
        "help": "/state: what the model knows so far   /undo: take the last turn back   /new: begin again   /quit: end",
        "patient": "patient",
        "state": "state",
        "action": "action",
        "reply": "reply",
        "conversation": "from the conversation",
        "graph": "from the graph",
        "nothing": "nothing yet",
        "none": "this model has none",
        "undone": "taken back: {text}",
        "nothing to undo": "nothing to take back",
        "new": "a new conversation",
        "unknown": "{text} is not a command: {help}",
        "silence": "(no words)",
        "ask_symptoms": "ask about symptoms",
        "diagnosis": "diagnose",
        "prescribe_medicine": "suggest medicine",
        "chitchat": "chat",
    },
    "zh": {
        "welcome": "请描述您的不适。/state /undo /new /quit；/help 查看说明。不构成医疗建议。",
        "help": "/state：目前的患者状态   /undo：撤回上一轮   /new：重新开始   /quit：结束",
        "patient": "患者",
        "state": "状态",
        "action": "行动",
        "reply": "回复",
        "conversation": "来自对话",
        "graph": "来自图谱",
        "nothing": "暂无",
        "none": "该模型没有这一部分",
        "undone": "已撤回：{text}",
        "nothing to undo": "没有可撤回的内容",
        "new": "新的对话",
        "unknown": "{text} 不是命令：{help}",
        "silence": "（无内容）",
        "ask_symptoms": "询问症状",
        "diagnosis": "诊断",
        "prescribe_medicine": "用药建议",
        "chitchat": "闲聊",
    },
}


def chat(
    model: Annotated[Path, typer.Argument(help="A run, or a folder with a saved model.")],
    language: Annotated[str | None, typer.Option(help="zh or en, of what is around the talk [the model's].")] = None,
    search: Annotated[str, typer.Option(help="beam, greedy or sampling.")] = "beam",
    temperature: Annotated[float, typer.Option(help="Of sampling.")] = 1.0,
    top_k: Annotated[int | None, typer.Option(help="Sample among so many of the best words [all].")] = None,
    top_p: Annotated[float | None, typer.Option(help="... among the fewest whose share reaches this [all].")] = None,
    seed: Annotated[int, typer.Option(help="Of sampling: the same seed gives the same replies.")] = 1,
    corpus: Annotated[Path | None, typer.Option(help="Where the run's corpus is now, if it has moved.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print every reply as a line of JSON.")] = False,
) -> None:
    """Talk to a model; every reply comes with the patient state and the physician action behind it.

    Commands inside: /state, /undo, /new, /quit, /help. The end of input (Ctrl-D) ends the talk.

    \b
    Example:
        vrbot chat runs/first
        echo "I have had a cough for three days" | vrbot chat runs/first --json
    """
    from vrbot.agent.chat import Chat
    from vrbot.agent.respond import Agent
    from vrbot.agent.searching import Search

    check_language(language)
    how = Search(search, temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)  # type: ignore[arg-type]
    agent = Agent.from_pretrained(model, corpus=corpus)
    talk(Chat(agent, how), language or agent.language, as_json=as_json)


def check_language(language: str | None) -> None:
    if language is not None and language not in WORDS:
        raise UsageError(f"unknown language {language!r}: choose one of {', '.join(WORDS)}")


def talk(chat: Chat, language: str, *, as_json: bool = False) -> None:
    """Reads what the patient says from standard input until it ends, and shows the replies."""
    words = WORDS[language]
    screen = ReplyScreen(words)
    show: Callable[[Reply], None] = _show_json if as_json else screen.show
    if not as_json and sys.stdin.isatty():
        screen.hint(words["welcome"])
    for text in _lines(words["patient"]):
        if text == "/quit":
            return
        if text.startswith("/"):
            _obey(text, chat, screen, words)
        elif text:
            show(chat.say(text))


def _obey(command: str, chat: Chat, screen: ReplyScreen, words: Mapping[str, str]) -> None:
    if command == "/state":
        screen.show_state(chat.replies[-1] if chat.replies else None)
    elif command == "/undo":
        text = chat.undo()
        screen.hint(words["nothing to undo"] if text is None else words["undone"].format(text=text))
    elif command == "/new":
        chat.begin_again()
        screen.hint(words["new"])
    elif command == "/help":
        screen.hint(words["help"])
    else:
        note(words["unknown"].format(text=command, help=words["help"]))


def _lines(prompt: str) -> Iterator[str]:
    """What is typed or piped in, line by line, without blanks around it."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")  # bytes that are no text must not end the talk
    if not sys.stdin.isatty():
        yield from (line.strip() for line in sys.stdin)
        return
    import readline  # noqa: F401  # gives input() its line editing

    while True:
        try:
            yield input(f"{prompt}> ").strip()
        except EOFError:
            say()
            return


def _show_json(reply: Reply) -> None:
    say(json.dumps(reply.to_dict(), ensure_ascii=False))
    sys.stdout.flush()


class ReplyScreen:
    """Shows replies on standard output: in colour on a terminal, as plain lines elsewhere."""

    def __init__(self, words: Mapping[str, str]) -> None:
        from rich.console import Console

        self._words = words
        self._console: Console = Console(file=sys.stdout, highlight=False, soft_wrap=True)

    def hint(self, text: str) -> None:
        self._line(None, text, "dim")

    def show(self, reply: Reply) -> None:
        """State, action, and the reply itself, each on a line of its own."""
        if reply.state is not None:
            self.show_state(reply)
        if reply.categories is not None:
            self._line("action", self._action(reply), "magenta")
        self._line("reply", reply.text or self._words["silence"], "bold green")
        sys.stdout.flush()

    def show_state(self, reply: Reply | None) -> None:
        """The patient's state: new entities with +, dropped ones with -."""
        if reply is not None and reply.state is None:
            self._line("state", self._words["none"], "cyan")
            return
        entities = () if reply is None else reply.state or ()
        shown = [("+" if entity.status == "new" else "") + entity.name for entity in entities]
        shown += [] if reply is None else [f"-{name}" for name in reply.dropped or ()]
        self._line("state", "  ".join(shown) or self._words["nothing"], "cyan")

    def _action(self, reply: Reply) -> str:
        shares = sorted((reply.categories or {}).items(), key=lambda share: -share[1])
        text = "  ".join(f"{self._words[name]} {share:.0%}" for name, share in shares)
        keywords = "  ".join(self._keyword(keyword) for keyword in reply.keywords or ())
        return f"{text} | {keywords}" if keywords else text

    def _keyword(self, keyword: Keyword) -> str:
        source = keyword.source
        if source is None:
            return keyword.name
        share = keyword.from_graph if source == "graph" else keyword.from_conversation
        return f"{keyword.name} ({self._words[source]} {share:.0%})"

    def _line(self, label: str | None, text: str, style: str) -> None:
        from rich.text import Text

        line = Text() if label is None else Text(f"{self._words[label]}: ", "dim")
        self._console.print(line.append(_printable(text), style))


def _printable(text: str) -> str:
    """The text without what would steer a terminal, or could not be written at all."""
    return "".join(character for character in text if character.isprintable())
