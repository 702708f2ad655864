"""What a run has done."""

from typing import TYPE_CHECKING, Any, Dict, List, Optional

from . import _gpusim
from ._gpusim import Error

if TYPE_CHECKING:
    import numpy
    import pandas


def pandas_module() -> Any:
    """pandas, or an Error that says what to install."""
    try:
        import pandas
    except ImportError as e:
        raise Error("frames need pandas, which is not installed (Debian: python3-pandas); "
                    "Result.stats has the same as dictionaries") from e
    return pandas


class Result:
    """A run that has ended.

    stats: the object that ``gpusim run --stats`` writes (docs/cli.md).
    exit_status: as the command's: the guest's, 128 + signal after a fault, 124 at a limit, 125 in a
        deadlock, 130 if the run was ended from outside.
    output, errors: what the guest wrote to its standard output and error, if that was captured.
    messages: notes, and reports of cores that stopped, as the command prints them.
    interrupted: the run was ended before the program was.
    profile: with ``profile=True``, the object that ``--profile=FILE.json`` writes.
    """

    def __init__(self, stats: Dict[str, Any], outcome: Dict[str, Any], output: bytes, errors: bytes,
                 messages: List[str], per_core: Optional["numpy.ndarray"],
                 profile: Optional[Dict[str, Any]]) -> None:
        self.stats = stats
        self.exit_status: int = outcome["exit_status"]
        self.interrupted: bool = outcome["interrupted"]
        self.deadlocked: bool = outcome["deadlocked"]
        self.out_of_memory: bool = outcome["out_of_memory"]
        self.output = output
        self.errors = errors
        self.messages = messages
        self.profile = profile
        self._per_core = per_core

    @property
    def faults(self) -> List[Dict[str, Any]]:
        """Cores that ended otherwise than by themselves: core, pc, symbol, reason."""
        return self.stats["faults"]

    @property
    def text(self) -> str:
        """The guest's standard output as text."""
        return self.output.decode(errors="replace")

    def energy(self) -> Dict[str, Dict[str, Any]]:
        """The estimates of ``energy=...``, by target."""
        return {target["target"]: target for target in self.stats.get("energy", [])}

    def check(self) -> "Result":
        """This result; an Error if the exit status is not 0."""
        if self.exit_status != 0:
            said = self.messages or [self.errors.decode(errors="replace").strip()]
            raise Error("\n".join([f"the run ended with status {self.exit_status}",
                                   *filter(None, said)]))
        return self

    def to_frame(self, of: str = "cores") -> "pandas.DataFrame":
        """As a pandas frame: instructions by class.

        of: "cores": a row for each core; "functions", "lines": a row for each part of the program,
            most instructions first.
        """
        pandas = pandas_module()
        if of == "cores":
            if "per_core" in self.stats:
                rows = [core["classes"] for core in self.stats["per_core"]]
                frame = pandas.DataFrame(rows, columns=_gpusim.classes)
            elif self._per_core is not None:
                frame = pandas.DataFrame(self._per_core, columns=_gpusim.classes)
            else:
                raise Error("the classes of each core were not kept: run with per_core=True")
            frame.index.name = "core"
        elif of in ("functions", "lines"):
            frame = pandas.DataFrame([part["classes"] for part in self.stats[of]],
                                     index=[part[of[:-1]] for part in self.stats[of]],
                                     columns=_gpusim.classes).fillna(0).astype("int64")
            frame.index.name = of[:-1]
        else:
            raise Error(f'to_frame({of!r}): expected "cores", "functions" or "lines"')
        frame.insert(0, "guest_instructions", frame.sum(axis=1))
        return frame

    def __repr__(self) -> str:
        s = self.stats
        return (f"<gpusim.Result: {s['cores']} cores on {s['backend']}, "
                f"{s['guest_instructions']} guest instructions, exit status {self.exit_status}>")
