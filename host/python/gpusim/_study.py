"""Several runs, and what can be known without one."""

import itertools
import json
import os
import pathlib
from typing import (TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional,
                    Sequence, Union)

from . import _gpusim
from ._gpusim import Error
from ._machine import _OWN, run
from ._result import Result, pandas_module
from ._words import check_keywords

if TYPE_CHECKING:
    import pandas


class Study:
    """Runs of one program: ``points`` has what varied, ``results`` the Result of each."""

    def __init__(self, points: List[Dict[str, Any]], results: List[Result]) -> None:
        self.points = points
        self.results = results

    def __len__(self) -> int:
        return len(self.points)

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    def rows(self) -> List[Dict[str, Any]]:
        """A dictionary for each run: what varied, then what was measured; "joules TARGET" is
        energy."""
        rows = []
        for point, result in zip(self.points, self.results):
            stats = result.stats
            row = dict(point)
            for key in ("guest_instructions", "seconds", "mips", "exit_status"):
                row[key] = stats[key]
            row.update(stats["classes"])
            if "simulated_time" in stats:
                row["simulated_cycles"] = stats["simulated_time"]["cycles"]
                row["simulated_seconds"] = stats["simulated_time"]["seconds"]
            for name, target in result.energy().items():
                row["joules " + name] = target["dynamic"]["value_J"]
            rows.append(row)
        return rows

    def to_frame(self) -> "pandas.DataFrame":
        """The rows as a pandas frame."""
        return pandas_module().DataFrame(self.rows())


def sweep(program: Any, args: Iterable[Any] = (), *, over: Mapping[str, Sequence[Any]],
          progress: Optional[Callable[[int, int, Dict[str, Any]], Any]] = None,
          **keywords: Any) -> Study:
    """Runs a program once for each combination of what varies, one after the other.

    over: keyword -> values, as in ``over={"cores": [1, 4, 16], "group_width": [8, 64]}``; "program"
        and "args" may vary, too.
    progress(done, all, point): is called before each run.
    Other keywords: as for ``run``.
    """
    check_keywords([*keywords, *(k for k in over if k != "program")], _OWN, "sweep")
    twice = sorted(set(keywords) & set(over))
    if twice:
        raise Error(f"sweep(): {twice[0]} both varies and does not")
    for name, values in over.items():
        if isinstance(values, (str, bytes)) or not list(values):
            raise Error(f"sweep(): over[{name!r}]: expected a list of values")
    points = [dict(zip(over, values)) for values in itertools.product(*over.values())]
    results = []
    for done, point in enumerate(points):
        if progress is not None:
            progress(done, len(points), point)
        words = {"program": program, "args": args, **keywords, **point}
        results.append(run(words.pop("program"), words.pop("args"), **words))
    return Study(points, results)


def estimate_energy(of: Union[Result, Mapping[str, Any], str, "os.PathLike[str]"],
                    targets: Union[str, Iterable[str]] = "all") -> Dict[str, Dict[str, Any]]:
    """What a run would take on these targets, by the target's name (docs/energy.md).

    of: a Result, the dictionary of its statistics, or a file that ``--stats`` wrote.
    """
    if isinstance(of, Result):
        text = json.dumps(of.stats)
    elif isinstance(of, Mapping):
        text = json.dumps(dict(of))
    else:
        text = pathlib.Path(of).read_text(encoding="utf-8")
    names = targets if isinstance(targets, str) else ",".join(targets)
    report = json.loads(_gpusim.estimate_energy(text, names))
    return {target["target"]: target for target in report["targets"]}


def targets() -> List[Dict[str, str]]:
    """The energy targets that are built in: name, title, conditions, uncertainty."""
    return _gpusim.targets()


def info() -> Dict[str, Any]:
    """What ``gpusim info --json`` prints: ISAs, backends, devices of this machine."""
    return json.loads(_gpusim.info_json())


def stacks_by_core(program: Any, args: Iterable[Any] = (), **keywords: Any) -> str:
    """Runs a program and tells which core spent how many instructions in which function, as folded
    stacks: lines ``core 3;main 1234``, the input of flame graph programs.

    Keywords: as for ``run``. A core that stopped inside a block counts with the whole block. It
    needs numpy.
    """
    import numpy

    check_keywords(keywords, _OWN, "stacks_by_core")
    functions: List[str] = []  # by block
    lengths: List[int] = []
    times: Dict[int, Dict[int, int]] = {}

    def on_translation(block: Dict[str, Any]) -> None:
        name = block["symbol"].partition("+0x")[0]
        functions.append("(unknown)" if name.startswith("0x") else name.replace(";", ","))
        lengths.append(len(block["instructions"]))

    def on_blocks(core: int, blocks: "numpy.ndarray") -> None:
        of_core = times.setdefault(core, {})  # calls about one core come one after the other
        for block, count in zip(*numpy.unique(blocks, return_counts=True)):
            of_core[int(block)] = of_core.get(int(block), 0) + int(count)

    run(program, args, on_translation=on_translation, on_blocks=on_blocks, **keywords)
    lines = []
    for core in sorted(times):
        sums: Dict[str, int] = {}
        for block, count in times[core].items():
            sums[functions[block]] = sums.get(functions[block], 0) + count * lengths[block]
        lines += [f"core {core};{name} {count}\n" for name, count in sorted(sums.items()) if count]
    return "".join(lines)
