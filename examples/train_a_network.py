"""Train a small network on the bound with PyTorch, starting from a linear ranker.

    score(x) = wᵀx + net(x)        w of LargeMarginRanker; net, with one hidden layer, is 0 at the start

    pip install 'rankopt[torch]'
    python examples/train_a_network.py

A quarter of the training queries is held out; the best epoch on them is returned. Noise in the scores smooths the
bound: without it, a network fits 18 queries exactly. On other data, compare with the linear ranker before you use it.
"""

import torch

from rankopt import LargeMarginRanker, evaluate, load_sample
from rankopt.data import normalize
from rankopt.torch import MarginLoss

MEASURE, NOISE = "nDCG@10", 0.3


class Scorer(torch.nn.Module):
    def __init__(self, coef, hidden=32):
        super().__init__()
        self.coef = torch.nn.Parameter(torch.as_tensor(coef))
        self.net = torch.nn.Sequential(
            torch.nn.Linear(coef.size, hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, 1, bias=False)
        )
        torch.nn.init.zeros_(self.net[-1].weight)

    def forward(self, x):
        return x @ self.coef + self.net(x).squeeze(-1)


def measured(model, queries):
    with torch.no_grad():
        return evaluate(queries, model(torch.tensor(queries.features)).numpy(), MEASURE).mean()


torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
sample = load_sample("les-miserables")
train, test = normalize(sample.train, "zscore"), normalize(sample.test, "zscore")
held_out, train = train.select(slice(0, 4)), train.select(slice(4, None))

linear = LargeMarginRanker(MEASURE).fit(train)
model, loss = Scorer(linear.coef_), MarginLoss(MEASURE)
features, spread = torch.tensor(train.features), linear.predict(train).std()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
start, best = measured(model, test), (measured(model, held_out), {**model.state_dict()})
for _ in range(120):
    optimizer.zero_grad()
    scores = model(features)
    noisy = scores + NOISE * spread * torch.randn_like(scores)
    loss(noisy, train.relevance, offsets=train.offsets).backward()
    optimizer.step()
    if measured(model, held_out) > best[0]:
        best = measured(model, held_out), {name: weights.clone() for name, weights in model.state_dict().items()}
model.load_state_dict(best[1])
print(f"{MEASURE} on the test queries: {start:.4f} linear, {measured(model, test):.4f} network")
