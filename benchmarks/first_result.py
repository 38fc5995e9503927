"""What the first result costs: processor seconds with an empty cache of kernels, beside those with a warm one.

    python benchmarks/first_result.py --turns 3

By turns, each in a process of its own: the training snippet of the README; a fit on two parts of MQ2008, where
RANKOPT_DATA names the folder of the data sets, and on made data of that size, whose rankings are harder (471 queries,
9,600 documents, 46 features); and `rankopt demo --report`. Imports count both times.
"""

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

FIT = """
import numpy as np
from rankopt.rankers import LargeMarginRanker

random = np.random.default_rng(0)
lengths = random.integers(5, 121, 471)
lengths = np.maximum(lengths * 9600 // lengths.sum(), 5)
X = random.normal(size=(lengths.sum(), 46))
latent = X @ random.normal(size=46) + 8.0 * random.normal(size=len(X))
y = (latent > np.quantile(latent, 0.8)) + 1.0 * (latent > np.quantile(latent, 0.94))
ranker = LargeMarginRanker("nDCG@10").fit(X, y, group=lengths)
print(ranker.certificate_, ranker.n_iter_)
"""


MQ2008 = """
import os
from pathlib import Path
from rankopt.data import concatenate, read_svmlight
from rankopt.rankers import LargeMarginRanker

folder = Path(os.environ["RANKOPT_DATA"]) / "letor4-mq2008"
queries = concatenate([read_svmlight(folder / f"S{part}.txt.gz") for part in (1, 2)])
print(LargeMarginRanker("nDCG@10").fit(queries).certificate_)
"""


def snippet() -> str:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return next(code for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "history_.plot()" in code)


CASES = {
    "README's snippet (23 queries)": ["-c", snippet()],
    **({"a fit on MQ2008, parts S1 and S2": ["-c", MQ2008]} if "RANKOPT_DATA" in os.environ else {}),
    "a fit of that size, made": ["-c", FIT],
    "rankopt demo --report": ["-m", "rankopt", "demo", "--report", "report.html"],
}


def processor_seconds(arguments: list[str], cache: str, folder: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "MPLBACKEND": "agg", "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, *arguments], env=environment, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--turns", type=int, default=3)
    turns = parser.parse_args().turns
    print("| | empty cache, s | warm, s | ratio |\n|---|---|---|---|")
    for name, arguments in CASES.items():
        cold, warm = [], []
        for _ in range(turns):
            with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as folder:
                cold.append(processor_seconds(arguments, cache, folder))
                warm.append(processor_seconds(arguments, cache, folder))
        print(f"| {name} | {min(cold):.1f} | {min(warm):.1f} | {min(cold) / min(warm):.2f} |", flush=True)


if __name__ == "__main__":
    main()
