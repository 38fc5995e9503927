"""PyTorch: losses of network scores, and layers that solve problems (extra `torch`; imported on first use)."""

from typing import TYPE_CHECKING

from formulations.registry import lazy

if TYPE_CHECKING:  # the table is text: this tells a type checker what the names are
    from rankopt.torch.layers import FenchelYoungLoss as FenchelYoungLoss
    from rankopt.torch.layers import PerturbedArgmax as PerturbedArgmax
    from rankopt.torch.layers import RankingArgmax as RankingArgmax
    from rankopt.torch.layers import SparseMAP as SparseMAP
    from rankopt.torch.layers import SPOPlusLoss as SPOPlusLoss
    from rankopt.torch.losses import MarginLoss as MarginLoss
    from rankopt.torch.losses import RankingLoss as RankingLoss

PARTS = {
    "FenchelYoungLoss": "rankopt.torch.layers:FenchelYoungLoss",
    "MarginLoss": "rankopt.torch.losses:MarginLoss",
    "PerturbedArgmax": "rankopt.torch.layers:PerturbedArgmax",
    "RankingArgmax": "rankopt.torch.layers:RankingArgmax",
    "RankingLoss": "rankopt.torch.losses:RankingLoss",
    "SPOPlusLoss": "rankopt.torch.layers:SPOPlusLoss",
    "SparseMAP": "rankopt.torch.layers:SparseMAP",
}
"""Everything here, `name: "module:object"`."""

__all__ = [*PARTS]

__getattr__, __dir__ = lazy(__name__, PARTS)
