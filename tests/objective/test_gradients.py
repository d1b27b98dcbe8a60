"""Where gradients go: every term of the loss against every network, both ways.

The rows follow the paper's conditioning. L_s draws the state from q(S) and the action from p(A | S), so its
reconstruction moves the inference tracker and the prior policy. L_a draws the state from p(S) and the action from
q(A | S): its reconstruction and its divergence move the prior tracker through that state. Responses are read by the
inference networks only, graphs by the prior policy only. Retrieval itself passes no gradient. Where gradient passes
through guesses only, a reconstruction moves no network but the generator and the policy that guessed.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from tests.model.tiny import batch_of, moment, tiny_config, without_labels
from tests.objective.watched import terms_of, watched_vrbot
from vrbot.dialogue.batching import SessionBatch
from vrbot.dialogue.corpus import Corpus
from vrbot.model.vrbot import VRBot

TWO_STAGE = """
                       prior_    inference_  prior_   inference_  subgraph_  response_
                       tracker   tracker     policy   policy      encoder    encoder    generator
kl_state               yes       yes         no       no          no         yes        no
reconstruction_state   no        yes         yes      no          yes        yes        yes
reconstruction_action  yes       no          no       yes         no         yes        yes
kl_category            yes       no          yes      yes         yes        yes        no
kl_keywords            yes       no          yes      yes         yes        yes        no
labels                 yes       yes         yes      yes         yes        yes        no
"""

JOINT = """
                       prior_    inference_  prior_   inference_  subgraph_  response_
                       tracker   tracker     policy   policy      encoder    encoder    generator
kl_state               yes       yes         no       no          no         yes        no
reconstruction         no        yes         no       yes         no         yes        yes
kl_category            no        yes         yes      yes         yes        yes        no
kl_keywords            no        yes         yes      yes         yes        yes        no
labels                 yes       yes         yes      yes         yes        yes        no
"""

TWO_STAGE_STOPPED = """
                       prior_    inference_  prior_   inference_  subgraph_  response_
                       tracker   tracker     policy   policy      encoder    encoder    generator
kl_state               yes       no          no       no          no         no         no
reconstruction_state   no        yes         yes      no          yes        yes        yes
reconstruction_action  yes       no          no       yes         no         yes        yes
kl_category            yes       no          yes      no          yes        no         no
kl_keywords            yes       no          yes      no          yes        no         no
labels                 yes       yes         yes      yes         yes        yes        no
"""

JOINT_STOPPED = """
                       prior_    inference_  prior_   inference_  subgraph_  response_
                       tracker   tracker     policy   policy      encoder    encoder    generator
kl_state               yes       no          no       no          no         no         no
reconstruction         no        yes         no       yes         no         yes        yes
kl_category            no        no          yes      no          yes        no         no
kl_keywords            no        no          yes      no          yes        no         no
labels                 yes       yes         yes      yes         yes        yes        no
"""

TWO_STAGE_GUESSES = """
                       prior_    inference_  prior_   inference_  subgraph_  response_
                       tracker   tracker     policy   policy      encoder    encoder    generator
kl_state               yes       yes         no       no          no         yes        no
reconstruction_state   no        no          yes      no          yes        no         yes
reconstruction_action  no        no          no       no          no         no         yes
kl_category            no        no          yes      yes         yes        yes        no
kl_keywords            no        no          yes      no          yes        no         no
labels                 yes       yes         yes      yes         yes        yes        no
"""

JOINT_GUESSES = """
                       prior_    inference_  prior_   inference_  subgraph_  response_
                       tracker   tracker     policy   policy      encoder    encoder    generator
kl_state               yes       yes         no       no          no         yes        no
reconstruction         no        no          no       no          no         no         yes
kl_category            no        no          yes      yes         yes        yes        no
kl_keywords            no        no          yes      no          yes        no         no
labels                 yes       yes         yes      yes         yes        yes        no
"""

TABLES = {
    ("two-stage", "draws", False): TWO_STAGE,
    ("joint", "draws", False): JOINT,
    ("two-stage", "draws", True): TWO_STAGE_STOPPED,
    ("joint", "draws", True): JOINT_STOPPED,
    ("two-stage", "guesses", False): TWO_STAGE_GUESSES,
    ("joint", "guesses", False): JOINT_GUESSES,
}


def read_table(table: str) -> dict[str, dict[str, bool]]:
    """Term -> network -> whether the term's gradient reaches it."""
    first, second, *rows = (line.split() for line in table.strip().splitlines())
    networks = [begin + end for begin, end in zip(first, second[: len(first)], strict=True)] + second[len(first) :]
    return {row[0]: {network: word == "yes" for network, word in zip(networks, row[1:], strict=True)} for row in rows}


def own_parameters(model: VRBot, network: str) -> list[Tensor]:
    """Those that no other network shares: vectors of words and categories belong to none."""
    shared = {id(parameter) for part in (model.words, model.table, model.categories) for parameter in part.parameters()}
    return [parameter for parameter in getattr(model, network).parameters() if id(parameter) not in shared]


def reached(model: VRBot, term: Tensor, networks: list[str]) -> dict[str, bool]:
    model.zero_grad()
    term.sum().backward()
    gradients = {network: [tensor.grad for tensor in own_parameters(model, network)] for network in networks}
    return {
        network: any(grad is not None and bool(grad.any()) for grad in found) for network, found in gradients.items()
    }


def batch_for(term: str, corpus: Corpus) -> SessionBatch:
    """Divergences and reconstructions where nothing is known, label terms where everything is."""
    batch = batch_of(corpus)
    return batch if term == "labels" else without_labels(batch)


def found_table(model: VRBot, corpus: Corpus, table: dict[str, dict[str, bool]]) -> dict[str, dict[str, bool]]:
    return {
        term: reached(model, terms_of(model, batch_for(term, corpus), moment())[term], list(row))
        for term, row in table.items()
    }


@pytest.mark.parametrize(
    ("bound", "through", "stopped", "form"),
    [
        *((*table, "small") for table in TABLES),
        ("two-stage", "draws", False, "span"),
        ("two-stage", "draws", False, "paper"),
        ("joint", "draws", True, "paper"),
        ("two-stage", "guesses", False, "paper"),
    ],
)
def test_gradients_reach_the_networks_of_the_table_and_no_others(
    corpus: Corpus, bound: str, through: str, stopped: bool, form: str
) -> None:
    config = tiny_config(
        form,
        objective__bound=bound,
        objective__gradient_through=through,
        objective__stop_gradient_on_q=stopped,
    )
    model, table = watched_vrbot(config, corpus, scale=1.5), read_table(TABLES[bound, through, stopped])
    if through == "guesses" and form != "small":  # a span has a divergence, a set is only judged along what was drawn
        table["kl_keywords"] |= {"inference_policy": True, "response_encoder": True}
    assert found_table(model, corpus, table) == table


def test_no_gradient_passes_through_a_state_to_the_turn_before(corpus: Corpus) -> None:
    """Carried memory too is detached, so what the second turns cost cannot move how the first turns were read."""
    model = watched_vrbot(tiny_config("paper"), corpus)
    batch = without_labels(batch_of(corpus))
    embedded: list[Tensor] = []

    def keep(module: nn.Module, given: tuple[Tensor, ...], result: Tensor) -> None:
        result.retain_grad()
        embedded.append(result)

    model.dropout.register_forward_hook(keep)
    terms = terms_of(model, batch, moment())
    later = batch.turn == 1
    torch.stack([term[later].sum() for term in terms.values()]).sum().backward()
    context_gradient = embedded[0].grad
    assert context_gradient is not None
    assert bool(context_gradient[later].any())
    assert not context_gradient[~later].any()


def test_gradients_are_finite_in_every_form(corpus: Corpus) -> None:
    for name in ("vrbot", "vrbot-no-context"):
        for form in ("small", "paper"):
            model = watched_vrbot(tiny_config(form), corpus, name=name, scale=4.0)
            model.loss(batch_of(corpus), moment(step=10**6)).total.backward()
            assert all(p.grad is None or bool(p.grad.isfinite().all()) for p in model.parameters())
