"""What requests carry; a field that is not known is refused, a text is stored as it comes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field

from vrbot.serving.ratings import SCALES
from vrbot.serving.texts import LONGEST_OF_PATIENT, LONGEST_OF_STAFF

SHA = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Name = Annotated[str, Field(min_length=1, max_length=128, pattern="^[!-~]+$")]
Text = Annotated[str, Field(max_length=LONGEST_OF_STAFF)]
UserName = Annotated[str, Field(min_length=2, max_length=64, pattern="^[a-z0-9][a-z0-9._@-]{1,63}$")]
Password = Annotated[str, Field(min_length=10, max_length=1024)]
Id = Annotated[str, Path(pattern="^[0-9a-f]{32}$", description="As the desk gave it.")]
PathName = Annotated[str, Path(min_length=1, max_length=128, pattern="^[!-~]+$")]
PathUser = Annotated[str, Path(min_length=2, max_length=64, pattern="^[a-z0-9][a-z0-9._@-]{1,63}$")]
PatientKey = Annotated[str, Path(max_length=128, pattern="^[0-9a-f]{32}[.][0-9a-f]{40}$")]
Role = Literal["physician", "annotator", "researcher", "admin"]
LabelKind = Literal["state", "category", "keywords"]
Category = Literal["ask_symptoms", "diagnosis", "prescribe_medicine", "chitchat"]
Score = Annotated[int, Field(strict=True, ge=1, le=5)]


def _example(**values: Any) -> ConfigDict:
    return ConfigDict(extra="forbid", json_schema_extra={"examples": [values]})


class NewConsultation(BaseModel):
    """Sent again under the same `client_consultation_id` it opens nothing twice."""

    model_config = _example(client_consultation_id="tab-1", language="en", reference="case 17")
    client_consultation_id: Name | None = None
    language: Literal["zh", "en"] = "zh"
    reference: Text = ""


class HandOver(BaseModel):
    model_config = _example(to="bob")
    to: UserName


class NewTurn(BaseModel):
    model_config = _example(client_turn_id="tab-1-turn-1", text="I have had a cough for three days.")
    client_turn_id: Name
    text: Text


class PatientTurn(BaseModel):
    model_config = _example(client_turn_id="phone-1", text="A little.")
    client_turn_id: Name
    text: Annotated[str, Field(max_length=LONGEST_OF_PATIENT)]


class WhatIf(BaseModel):
    """None: as the model infers it."""

    model_config = _example(category="diagnosis")
    state: list[Text] | None = None
    category: Category | None = None
    keywords: list[Text] | None = None


class OwnWords(BaseModel):
    model_config = _example(text="Since when do you have the fever?")
    text: Text


class Approval(BaseModel):
    """`seen_findings` is the `findings_sha256` of the answer that asked for the reason."""

    model_config = _example(seen_sha256="0" * 64, seen_turn=1)
    seen_sha256: SHA
    seen_turn: Annotated[int, Field(strict=True, ge=0)]
    override_reason: Text | None = None
    seen_findings: SHA | None = None


class Edit(BaseModel):
    model_config = _example(seen_sha256="0" * 64, text="Since when do you have the fever?")
    seen_sha256: SHA
    text: Text


class Rejection(BaseModel):
    model_config = _example(reason="asked already")
    reason: Text = ""


class Feedback(BaseModel):
    model_config = _example(fluency=5, quality=4)
    fluency: Score | None = None
    knowledge: Score | None = None
    quality: Score | None = None


class NewLabel(BaseModel):
    """A list of entity names for state and keywords, one of the categories for category.

    `seen` is the number of the label this one is to replace, 0 for none; left out, whatever is there is replaced.
    """

    model_config = _example(value=["cough"], seen=0)
    value: Category | list[Text]
    seen: Annotated[int, Field(strict=True, ge=0)] | None = None


class NewOrder(BaseModel):
    model_config = _example(campaign="study-1", item="item-7", systems=["a", "b"])
    campaign: Name
    item: Name
    systems: Annotated[list[Name], Field(min_length=1, max_length=20)]


class NewRating(BaseModel):
    model_config = _example(measure="fluency", position=0, value=4)
    measure: Literal[tuple(SCALES)]  # type: ignore[valid-type]
    position: Annotated[int, Field(strict=True, ge=0, le=19)]
    value: Annotated[int, Field(strict=True, ge=-1, le=5)]


class SignIn(BaseModel):
    model_config = _example(name="ann", password="a long password")
    name: Annotated[str, Field(max_length=64)]
    password: Annotated[str, Field(max_length=1024)]


class Setup(BaseModel):
    model_config = _example(code="the code the server printed", name="root", password="a long password")
    code: Annotated[str, Field(max_length=128)]
    name: UserName
    password: Password


class NewUser(BaseModel):
    model_config = _example(name="ann", password="a long password", role="physician")
    name: UserName
    password: Password
    role: Role


class NewPassword(BaseModel):
    model_config = _example(password="another long password")
    password: Password


class SwitchChange(BaseModel):
    """`on` stops all drafts."""

    model_config = _example(on=True, reason="the model is being checked")
    on: bool
    reason: Annotated[str, Field(min_length=1, max_length=500, pattern=r"\S")]
