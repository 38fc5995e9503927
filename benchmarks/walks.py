"""The walks of docs/walks.md, each in an empty folder with no compiled kernels, in seconds of
processor, and by the clock.

    python benchmarks/walks.py [PYTHON]

PYTHON: of an environment into which rankopt, LightGBM and pandas were installed; else the one that runs this.
A walk is a section; its blocks run one after the other, Python ones in one process each. The second time is of the same
walk once more, when its kernels are kept.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from time import perf_counter

ROOT = Path(__file__).parent.parent
FENCE = re.compile(r"^```(\w+)(?: title=\"(.*?)\")?\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
NIGHT = "A nightly job"


def walks():
    """Name and blocks of each section that can be walked."""
    for section in (ROOT / "docs/walks.md").read_text(encoding="utf-8").split("\n## ")[1:]:
        name, _, text = section.partition("\n")
        blocks = [block for block in FENCE.findall(text) if block[0] != "text"]
        if blocks or name.startswith(NIGHT):
            yield name, blocks


def walked(python, blocks, folder, environment):
    """Seconds of processor and of the clock until the last block is done."""
    began, used = perf_counter(), processor()
    for language, title, text in blocks:
        if title:
            (folder / title).write_text(text, encoding="utf-8")
            continue
        command = [python, "-c", text] if language == "python" else ["bash", "-euo", "pipefail", "-c", text]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{text}\n{done.stdout}{done.stderr}")
    return processor() - used, perf_counter() - began


def processor():
    used = getrusage(RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main():
    python = str(Path(sys.argv[1] if len(sys.argv) > 1 else sys.executable).absolute())
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "NUMBA_CACHE_DIR")}
    path = os.pathsep.join([str(Path(python).parent), os.environ["PATH"]])
    print(f"{'walk':50} first: processor, clock   again: processor, clock")
    for name, blocks in walks():
        with tempfile.TemporaryDirectory() as home:
            environment = {**clean, "PATH": path, "HOME": home, "NUMBA_CACHE_DIR": f"{home}/kernels"}
            seconds = []
            for time in ("first", "again"):
                folder = Path(home, time)
                folder.mkdir()
                if name.startswith(NIGHT):
                    blocks = [("sh", "", f"{python} {ROOT / 'examples/nightly.py'}")]
                seconds.append(walked(python, blocks, folder, environment))
        (first, at_first), (again, at_last) = seconds
        print(f"{name:50} {first:16.1f} {at_first:7.1f} {again:17.1f} {at_last:7.1f}", flush=True)


if __name__ == "__main__":
    main()
