"""PyTorch: losses of network scores, and layers that solve problems (extra `torch`; imported on first use)."""

from typing import TYPE_CHECKING

from formulations.registry import lazy, public_names

if TYPE_CHECKING:
    from rankopt.torch.layers import FenchelYoungLoss as FenchelYoungLoss
    from rankopt.torch.layers import PerturbedArgmax as PerturbedArgmax
    from rankopt.torch.layers import RankingArgmax as RankingArgmax
    from rankopt.torch.layers import SparseMAP as SparseMAP
    from rankopt.torch.layers import SPOPlusLoss as SPOPlusLoss
    from rankopt.torch.losses import MarginLoss as MarginLoss
    from rankopt.torch.losses import RankingLoss as RankingLoss

PARTS = public_names(__name__)
"""Everything here, `name: "module:object"`."""

__all__ = [*PARTS]

__getattr__, __dir__ = lazy(__name__, PARTS)
