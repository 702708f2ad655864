"""gpusim: functional simulation of thousands of CPU cores, from Python.

>>> import gpusim
>>> result = gpusim.run("matmul.elf", cores=1024, energy=["et-soc1"])
>>> result.exit_status, result.stats["guest_instructions"]

``run`` runs a program to its end, ``Machine`` in steps that memory and registers can be looked at
between. Keywords are the options of ``gpusim run``, with underscores: docs/python.md.
"""

try:
    from ._gpusim import Error, classes as CLASSES, version as __version__
except ImportError as e:
    raise ImportError(f"the compiled part of the package gpusim cannot be loaded: {e}. It is "
                      "built with python3-dev and pybind11-dev, for the system's python3") from e

Error.__module__ = "gpusim"

from ._machine import Core, Machine, Progress, run
from ._result import Result
from ._study import Study, estimate_energy, info, stacks_by_core, sweep, targets
from ._words import options

__all__ = ["CLASSES", "Core", "Error", "Machine", "Progress", "Result", "Study", "__version__",
           "estimate_energy", "info", "options", "run", "stacks_by_core", "sweep", "targets"]
