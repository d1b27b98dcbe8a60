"""Regressions that are fitted together are those that are fitted alone."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from vrbot.nets.regressions import fit_regressions


def test_the_regressions_reach_the_optimum_that_scikit_learn_finds() -> None:
    generator = np.random.default_rng(0)
    features = generator.standard_normal((60, 5)).astype(np.float32)
    wanted = (features[:, :2] + 0.5 * generator.standard_normal((60, 2)) > 0).astype(np.float32)
    fitted = fit_regressions(sparse.csr_array(features), wanted, ridge=0.5, epochs=3000)
    found = fitted.scores(sparse.csr_array(features))
    for column in range(2):
        model = LogisticRegression(C=2.0, tol=1e-8, max_iter=1000).fit(features, wanted[:, column])
        np.testing.assert_allclose(found[:, column], model.predict_proba(features)[:, 1], atol=0.02)
