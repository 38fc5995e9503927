"""Command line: `python -m benchmarks SUITE [CASE ...] [--quick]`."""

from __future__ import annotations

import argparse
import subprocess
import sys
import warnings
from importlib import import_module
from pathlib import Path

from benchmarks.cases import CASES, Results, Run

SUITES = {
    "accuracy": "rankers next to ridge, trees and published figures",
    "argmax": "the loss-augmented argmax next to SciPy, OR-Tools and sorting",
    "training": "what training costs: passes, steps, masters, growth, engines, first results",
    "criteria": "which criterion to train, and the smoothed measure",
    "direct": "coordinate ascent on the measure and exact line search",
    "trees": "trees on the bound next to LightGBM and XGBoost",
    "clicks": "learning and evaluation from simulated clicks: learning curves, propensities, estimators of value",
    "ratings": "collaborative rankers on MovieLens: accuracy, seconds, memory, bounds, quotas",
    "sets": "training and ranking under constraints, what a quota costs, versions of a solver",
    "exposure": "policies under limits of exposure: learned, by linear program, and the proven optimum",
    "decisions": "costs for optimization problems: regret, the minimum of SPO+, PyEPO, layers",
    "solvers": "what `solve` costs on top of the bare libraries, and what warm starts save",
    "faults": "fuzzed files, arrays, models and proofs; killed runs; comparison with enumeration",
}


def load(suite: str) -> None:
    """Register the cases of a suite."""
    import_module(f"benchmarks.{suite}")


def build_parser() -> argparse.ArgumentParser:
    suites = "\n".join(f"  {name:10}{summary}" for name, summary in SUITES.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", formatter_class=argparse.RawDescriptionHelpFormatter, epilog=f"suites:\n{suites}"
    )
    parser.add_argument("suite", nargs="?", choices=SUITES, help="without one, list the suites")
    parser.add_argument("cases", nargs="*", metavar="CASE", help="some cases of the suite; default: all")
    parser.add_argument("--list", action="store_true", help="list the cases of the suite")
    parser.add_argument("--quick", action="store_true", help="small sizes: shows that a case runs, measures nothing")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="number of seeds of what is random")
    parser.add_argument("--tries", type=int, help="number of tries, draws, splits or problems")
    parser.add_argument("--sets", nargs="+", default=(), help="data sets (or losses, as the case says)")
    parser.add_argument("--results", type=Path, help="JSON lines with finished parts, to resume a long run")
    parser.add_argument("--output", help="file of a picture or of recorded rows")
    return parser


def main(arguments: list[str] | None = None) -> int:
    parser = build_parser()
    options = parser.parse_args(arguments)
    if options.suite is None:
        for name, summary in SUITES.items():
            print(f"{name:10}{summary}")
        return 0
    load(options.suite)
    cases = CASES[options.suite]
    unknown = [name for name in options.cases if name not in cases]
    if unknown:
        parser.error(f"{options.suite} has no case {unknown[0]!r}; it has {', '.join(cases)}")
    if options.list:
        for one in cases.values():
            print(f"{one.name:20}{one.summary}{' (needs RANKOPT_DATA)' if one.needs_data else ''}")
        return 0
    run = Run(
        options.quick, options.seed, options.seeds, options.tries, tuple(options.sets), options.output,
        Results(options.results),
    )  # fmt: skip
    warnings.simplefilter("ignore")
    names, failed = options.cases or list(cases), False
    if options.suite == "faults" and len(names) > 1:  # limits of memory and forks want a process for each
        given = sys.argv[1:] if arguments is None else arguments
        rest = [word for word in given if word not in ("faults", *names)]
        for name in names:
            failed |= bool(subprocess.run([sys.executable, "-m", "benchmarks", "faults", name, *rest]).returncode)
        return int(failed)
    for name in names:
        missing = cases[name].missing()
        print(f"\n## {options.suite} {name}" + (f"\n\nskipped: {missing}" if missing else ""), flush=True)
        if not missing:
            failed = bool(cases[name].run(run)) or failed
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
