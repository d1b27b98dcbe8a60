"""Diagonal Gaussians, for models whose latent is continuous. Letter: Z latent size."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class DiagonalGaussian:
    """Independent normal variables; mean and log_variance [B, Z]."""

    mean: Tensor
    log_variance: Tensor

    def kl(self, prior: DiagonalGaussian) -> Tensor:
        """KL(self || prior) in closed form -> [B], in nats."""
        log_ratio = self.log_variance - prior.log_variance
        distance = (self.mean - prior.mean).square() * (-prior.log_variance).exp()
        return 0.5 * (log_ratio.expm1() - log_ratio + distance).sum(dim=-1)

    def log_prob(self, value: Tensor) -> Tensor:
        """Log density of values [B, Z] -> [B]."""
        distance = (value - self.mean).square() * (-self.log_variance).exp()
        return -0.5 * (distance + self.log_variance + math.log(2 * math.pi)).sum(dim=-1)

    def rsample(self, generator: torch.Generator) -> Tensor:
        """A draw [B, Z] through which gradients reach mean and variance."""
        noise = torch.empty_like(self.mean).normal_(generator=generator)
        return self.mean + (0.5 * self.log_variance).exp() * noise

    def detach(self) -> DiagonalGaussian:
        """The same distribution, sending no gradient back."""
        return DiagonalGaussian(self.mean.detach(), self.log_variance.detach())

    @staticmethod
    def standard(like: Tensor) -> DiagonalGaussian:
        """The standard normal in the shape of `like`."""
        return DiagonalGaussian(torch.zeros_like(like), torch.zeros_like(like))
