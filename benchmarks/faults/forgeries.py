"""Forged proofs, witnesses and solutions, and solvers that lie, by the hundred: none may be believed, and nothing but a
typed error may come of one.

What is attacked: `check_evidence`, `certify` (in doubles and in rational numbers), `solve` and `solve_batch`. True
evidence is changed in one to three places, from an entry that is one off to imaginary numbers, -2**63, masked arrays
and a proof inside itself. A change that leaves evidence valid may be believed: the judge goes through all
subdeterminants, all orders, or rational numbers (`tests/planted/forgeries.py`).

    python benchmarks/faults/forgeries.py --tries 500 --seed 0
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from planted.forgeries import ATTACKS, attack


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=500, help="of each kind")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    warnings.simplefilter("error")
    survived = 0
    for kind in ATTACKS:
        lost, refused = attack(kind, asked.tries, asked.seed)
        for line in lost[:20]:
            print(f"  {line[:2000]}")
        survived += asked.tries - len(lost)
        print(f"{kind}: tries {asked.tries}, survived {asked.tries - len(lost)}, refused {refused}")
    print(f"tries {asked.tries * len(ATTACKS)}, survived {survived}")


if __name__ == "__main__":
    main()
