"""Chinese wording.

Who the patient is stands as `{我}` in the patient's phrases and as `{您}` in the physician's; where somebody writes for
the patient both become 他 or 她. About half of the phrases leave the subject out, as people do.
"""

from __future__ import annotations

from random import Random

from vrbot.clinic.grammar import Grammar, fill, load_grammar
from vrbot.clinic.wording import Difficulty, chain, divide, ends_with_name, pick_name
from vrbot.clinic.world import Entity, bare_name

_DIGITS = "零一两三四五六七八九十"
_RELATIVES = {
    "son": ("我儿子", "我家孩子", "我孩子", "孩子"),
    "daughter": ("我女儿", "我家孩子", "我孩子", "孩子"),
    "father": ("我爸", "我父亲"),
    "mother": ("我妈", "我母亲"),
    "husband": ("我老公", "我爱人"),
    "wife": ("我老婆", "我爱人"),
}
_HOMOPHONES = dict(
    zip(
        "嗽泻胀痰晕喉咙做已像检症痒肿喘塞慌疹的在咽酸",
        "漱泄涨谈运猴龙作以象捡证氧种湍赛荒诊得再烟算",
        strict=True,
    )
)
_MOMENTARY = ("最近", "这几天", "出现", "时不时", "了")
"""Who says one of these does not go on with how long it has lasted."""

_ORDINALS = ("第一个", "第二个", "第三个")


class Chinese:
    """Puts entities into Chinese words."""

    code: str = "zh"
    others: tuple[str, ...] = ("同事", "邻居", "哥哥", "姐姐", "表弟", "室友", "同学")

    def __init__(self) -> None:
        self.grammar: Grammar = load_grammar("zh")

    def spoken(self, entity: Entity, rng: Random, other_name: float = 0.6) -> str:
        return pick_name(entity, "zh", other_name, rng)

    def named(self, rule: str, entity: Entity, rng: Random) -> str:
        name = self.spoken(entity, rng)
        keeps_verb = rule in ("other_person", "other_self", "side_effect")
        return fill(self.grammar.expand(rule, rng), {"x": name if keeps_verb else bare_name(name)})

    def present(self, findings: list[Entity], difficulty: Difficulty, rng: Random) -> tuple[str, list[Entity]]:
        telling = divide(findings, "zh", difficulty, rng)
        pieces = [([entity], clause) for entity, clause in telling.clauses]
        if telling.named:
            names = [self.spoken(entity, rng) for entity in telling.named]
            pieces.insert(0, (telling.named, self._enumerate(names, rng)))
        return chain(pieces, self.grammar.rules["joined"], rng)

    def _enumerate(self, names: list[str], rng: Random) -> str:
        if len(names) == 1:
            return self._single(names[0], rng)
        verbs = all(not name.startswith("有") for name in names)
        draw = rng.random()
        if verbs and len(names) == 2 and max(map(len, names)) <= 3 and draw < 0.35:
            together = "".join(names) if draw < 0.2 else f"又{names[0]}又{names[1]}"
            return self.grammar.expand("subject", rng) + together
        if verbs and draw < 0.6:
            listed = "、".join(names) if draw < 0.5 else "，".join(names[:-1]) + "，还" + names[-1]
            return self.grammar.expand("subject", rng) + listed
        head = self._single(names[0], rng)
        return head + "".join(rng.choice(("，", "，还", "，也", "，{我}还")) + name for name in names[1:])

    def _single(self, name: str, rng: Random) -> str:
        rule = "present_noun" if name.startswith("有") else "present_verb"
        return fill(self.grammar.expand(rule, rng), {"x": bare_name(name)}).replace("了了", "了")

    def absent(self, findings: list[Entity], rng: Random) -> str:
        if len(findings) > 1 and rng.random() < 0.6:
            names = "、".join(bare_name(self.spoken(entity, rng)) for entity in findings)
            return fill(self.grammar.expand("absent_all", rng), {"x": names})
        return "，".join(self._denial(entity, rng) for entity in findings)

    def _denial(self, entity: Entity, rng: Random) -> str:
        denied = entity.wordings["zh"].denied
        if denied and rng.random() < 0.5:
            return rng.choice(denied)
        return self.named("absent_disease" if entity.kind == "disease" else "absent", entity, rng)

    def position(self, index: int, count: int) -> str:
        if index == count - 1 and count > 1:
            return "最后一个" if count > 2 else "后面那个"
        return "前面那个" if index == 0 and count == 2 else _ORDINALS[index]

    def duration(self, days: int, rng: Random) -> str:
        if days <= 10:
            return f"{self.number(days)}天"
        if days <= 27:
            return f"{self.number(max(2, round(days / 7)))}个星期" if days > 17 else "半个月"
        if days <= 330:
            return f"{self.number(min(10, max(1, round(days / 30))))}个月"
        return f"{self.number(max(1, round(days / 365)))}年" if rng.random() < 0.6 else "好几年"

    def relative(self, relation: str, rng: Random) -> str:
        return rng.choice(_RELATIVES[relation])

    def sex(self, sex: str) -> str:
        return "男" if sex == "male" else "女"

    def number(self, value: int) -> str:
        return _DIGITS[value] if value <= 10 else str(value)

    def lasts(self, told: str, findings: list[Entity]) -> bool:
        return ends_with_name(told, findings, "zh") and not any(word in told for word in _MOMENTARY)

    def begin(self, introduction: str, head: str, complaint: str) -> str:
        if not introduction or introduction[-1] in "，。":
            return introduction + head + complaint
        clause, comma, rest = complaint.partition("，")
        return introduction + head + clause.replace("{我}", "") + comma + rest

    def join(self, parts: list[str], rng: Random) -> str:
        text = ""
        for part in parts:
            if text and text[-1] not in "，。？！ ":
                text += rng.choices(("，", "。", " "), weights=(65, 27, 8))[0]
            text += part
        text = text.rstrip("， ")
        if text[-1] in "。？！":
            return text
        return text + ("？" if text.endswith(("吗", "呢")) else rng.choice(("。", "。", "")))

    def listing(self, slot: str, entities: list[Entity], other_name: float, rng: Random) -> str:
        if slot == "questions":
            asked = [rng.choice(entity.wordings["zh"].asked or (f"有没有{entity.name('zh')}",)) for entity in entities]
            return "，".join(asked)
        names = [self.spoken(entity, rng, other_name) for entity in entities]
        bare = [bare_name(name) for name in names]
        if slot in ("symptoms", "evidence", "missing"):
            return "、".join(bare)
        if len(bare) == 2:
            return rng.choice(("和", "、", "加") if slot == "medicines" else ("和", "、")).join(bare)
        return "、".join(bare)

    def finish(self, text: str, person: str) -> str:
        other = {"he": "他", "she": "她"}.get(person)
        return text.replace("{您}", other or "您").replace("{我}", other or "我")

    def slip(self, text: str, rng: Random) -> str:
        places = [place for place, character in enumerate(text) if character in _HOMOPHONES]
        if places and rng.random() < 0.75:
            place = rng.choice(places)
            return text[:place] + _HOMOPHONES[text[place]] + text[place + 1 :]
        if len(text) > 8:
            place = rng.randrange(1, len(text) - 1)
            if text[place] not in "，。？、！0123456789":
                return text[:place] + text[place + 1 :]
        return text
