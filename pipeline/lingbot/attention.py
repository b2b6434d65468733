"""The one seam for attention: anything called as `sdpa` is can take its place."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]


def sdpa(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Queries [B, N, H, D] over k, v [B, M, H, D] → [B, N, H, D]: no mask, scale 1/√D."""
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return scaled_dot_product_attention(q, k, v).transpose(1, 2)
