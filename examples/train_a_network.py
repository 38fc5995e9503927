"""A small network trained on the bound with PyTorch, from a linear ranker on; it ends no worse on held-out data.

    score(x) = wᵀx + net(x)        w of LargeMarginRanker, net a hidden layer that begins at 0

Each character of Les Misérables is a query, the others are its documents. A quarter of the training queries is kept
aside, and the best epoch on these is taken; before the first, the network is the linear ranker. Noise of the scores, a
new draw a step, smooths the bound: 18 queries would be learnt by heart without.

    pip install 'rankopt[torch]'
    python examples/train_a_network.py [les-miserables | digits] [SEED]
"""

import sys

import torch

from rankopt import LargeMarginRanker, evaluate, load_sample
from rankopt.data import normalise
from rankopt.torch import MarginLoss

MEASURE = "nDCG@10"
NOISE = 0.3  # of the deviation of the linear scores


class Scorer(torch.nn.Module):
    """A linear score, and what a hidden layer adds to it."""

    def __init__(self, coef, hidden=32):
        super().__init__()
        self.linear = torch.nn.Linear(coef.size, 1, bias=False)
        self.net = torch.nn.Sequential(
            torch.nn.Linear(coef.size, hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, 1, bias=False)
        )
        with torch.no_grad():
            self.linear.weight.copy_(torch.as_tensor(coef)[None])
            self.net[-1].weight.zero_()

    def forward(self, x):
        return (self.linear(x) + self.net(x)).squeeze(-1)


def reached(model, queries):
    """The mean of the measure of the network's rankings."""
    with torch.no_grad():
        return evaluate(queries, model(torch.tensor(queries.features)).numpy(), MEASURE).mean()


name, seed = (*sys.argv[1:3], *("les-miserables", "0")[len(sys.argv) - 1 :])
torch.manual_seed(int(seed))
torch.set_default_dtype(torch.float64)
sample = load_sample(name)
train, test = normalise(sample.train, "zscore"), normalise(sample.test, "zscore")
held = len(train) // 4
aside, train = train.select(slice(0, held)), train.select(slice(held, None))

linear = LargeMarginRanker(MEASURE).fit(train)
model, loss = Scorer(linear.coef_), MarginLoss(MEASURE)
features, spread = torch.tensor(train.features), linear.predict(train).std()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
start, best = reached(model, test), (reached(model, aside), None)
for epoch in range(120):
    optimizer.zero_grad()
    scores = model(features)
    value = loss(scores + NOISE * spread * torch.randn_like(scores), train.relevance, offsets=train.offsets)
    value.backward()
    optimizer.step()
    now = reached(model, aside)
    if epoch % 30 == 0:
        print(f"epoch {epoch:3}: bound of the regret {value.item():.4f}, {MEASURE} aside {now:.4f}")
    if now > best[0]:
        best = now, {name: weights.clone() for name, weights in model.state_dict().items()}
if best[1] is not None:
    model.load_state_dict(best[1])
end = reached(model, test)
print(f"{MEASURE} on the test queries: linear {start:.4f}, network {end:.4f}")
if len(sys.argv) == 1:
    assert end >= start
