"""Many plans: ``python -m tests.simulation FIRST COUNT [FOLDER]`` carries out COUNT plans from the seed FIRST on, two
side by side. It prints a JSON line for each that fails, with the smallest plan that fails in the same way, and at last
how many there were a second. ``python -m tests.simulation --plan FILE`` carries out the plan in a file.

FOLDER: for the files of the worlds, best on a file system in memory (a temporary folder unless named).
"""

from __future__ import annotations

import gc
import json
import logging
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path

from tests.simulation.plans import Plan, make_plan, shrunk
from tests.simulation.world import carry_out, warm_up

_LANES = 2
_TOGETHER = 200         # plans that one process carries out: worlds leave some of their threads behind
_UNSWEPT = 25           # plans between two looks for garbage: some 3 MB each
_numbers = count()


def fix_hashes() -> None:
    """Begin anew with hashes of texts that are the same every time: sets have their order from these, and so would
    what a seed comes to."""
    if "PYTHONHASHSEED" not in os.environ:
        module = sys.modules["__main__"].__spec__
        name = "" if module is None else module.name.removesuffix(".__main__")
        os.execve(sys.executable, [sys.executable, "-m", name, *sys.argv[1:]], {**os.environ, "PYTHONHASHSEED": "0"})


def failures(plan: Plan, folder: Path) -> list[str]:
    """What is wrong after a plan; what it raises is. The paths of all worlds in a folder have one length: answers of
    managers name them, and are cut off somewhere."""
    try:
        return carry_out(plan, folder / f"{os.getpid():010}-{next(_numbers):06}")
    except Exception as error:
        return [f"raised: {error!r}"]


def kinds(wrong: list[str]) -> set[str]:
    """The kinds of what is wrong, which a smaller plan is to keep."""
    return {text.partition(":")[0] for text in wrong}


def fails_so(wanted: set[str], folder: Path, plan: Plan) -> bool:
    """Whether a plan fails in one of these ways."""
    return bool(wanted & kinds(failures(plan, folder)))


def sweep(seeds: Iterator[int], folder: Path) -> None:
    """Carry out plans, and print those that fail."""
    gc.disable()            # to look while a world lives costs an eighth, and finds little
    for number, seed in enumerate(seeds, 1):
        if not number % _UNSWEPT:
            gc.collect()
            gc.freeze()     # what a world leaves behind is not looked at again
        plan = make_plan(seed)
        if wrong := failures(plan, folder):
            small = shrunk(plan, partial(fails_so, kinds(wrong), folder))
            line = {"seed": seed, "wrong": wrong, "plan": small, "left": failures(small, folder)}
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()


def main() -> None:
    """As the module says."""
    fix_hashes()
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as own:
        if sys.argv[1] == "--plan":
            print(json.dumps(failures(json.loads(Path(sys.argv[2]).read_text()), Path(own))))
            return
        first, number = int(sys.argv[1]), int(sys.argv[2])
        folder = Path(sys.argv[3] if len(sys.argv) > 3 else own)
        warm_up()
        gc.freeze()         # what the imports have made is not looked through for garbage
        began, working = time.perf_counter(), 0
        for start in range(first, first + number, _TOGETHER):
            if working == _LANES:
                os.wait()
                working -= 1
            if os.fork() == 0:
                sweep(iter(range(start, min(start + _TOGETHER, first + number))), folder)
                os._exit(0)
            working += 1
        for _ in range(working):
            os.wait()
        print(json.dumps({"plans": number, "a second": round(number / (time.perf_counter() - began), 1)}))


if __name__ == "__main__":
    main()
