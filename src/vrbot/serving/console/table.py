"""Every page of the console, in the order of the navigation: to register one, add its line."""

from __future__ import annotations

from vrbot.serving.actors import ANNOTATE, AUDIT, CONSULT, RATE
from vrbot.serving.console import (
    annotation_page,
    audit_page,
    card_page,
    consultations_page,
    desk_page,
    experiments_page,
    rating_page,
)
from vrbot.serving.console.shell import PageEntry

PAGES: tuple[PageEntry, ...] = (
    PageEntry("/consultations", "consultations", "forum", CONSULT, consultations_page.page),
    PageEntry("/consultations/{consultation}", "desk", None, CONSULT, desk_page.page, parent="consultations"),
    PageEntry("/annotation", "annotation", "label", ANNOTATE, annotation_page.page),
    PageEntry("/evaluation", "evaluation", "rate_review", RATE, rating_page.page),
    PageEntry("/experiments", "experiments", "science", None, experiments_page.page),
    PageEntry("/model", "model", "badge", None, card_page.page),
    PageEntry("/audit", "audit", "verified_user", AUDIT, audit_page.page),
)
