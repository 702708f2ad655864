"""A machine of simulated cores, step by step, and ``run``."""

import json
import os
import pathlib
import tempfile
import time
from typing import (TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, List, NamedTuple,
                    Optional, Tuple, Union)

from . import _gpusim
from ._files import StandardFiles
from ._gpusim import Error
from ._result import Result
from ._words import check_keywords, command_words

if TYPE_CHECKING:
    import numpy

_CALLBACKS = ("on_translation", "on_blocks", "on_accesses", "on_synchronisation")
_OWN = ("args", "stdin", "stdout", "stderr", "progress", "progress_every", *_CALLBACKS)
_LONGEST = 1 << 62
Where = Union[int, str]


class Progress(NamedTuple):
    """How far a run is."""

    cores: int
    finished: int  # cores
    instructions: int  # of the guest, all cores together
    seconds: float  # of simulation


class Core:
    """One core of a machine; ``core["x0"]`` is a register, by the ISA's name for it."""

    def __init__(self, machine: "Machine", number: int) -> None:
        self._machine = machine
        self.number = number

    @property
    def state(self) -> str:
        """"running", "waiting" (in a system call) or "ended"."""
        return self._machine._now.state(self.number)

    @property
    def pc(self) -> Optional[int]:
        """Where it goes on; None once it has ended."""
        return self._machine._now.pc(self.number)

    @property
    def registers(self) -> Dict[str, int]:
        """All registers as unsigned numbers, vector registers of 128 bits among them."""
        registers: Dict[str, int] = {}
        for name, value in self._machine._now.registers(self.number):
            base, dot, half = name.rpartition(".")
            if dot and half in ("lo", "hi"):
                registers[base] = registers.get(base, 0) | value << (64 if half == "hi" else 0)
            else:
                registers[name] = value
        return registers

    def __getitem__(self, name: str) -> int:
        registers = self.registers
        if name not in registers:
            raise Error(f"{self._machine.isa} has no register {name}; Core.registers has them all")
        return registers[name]

    def __setitem__(self, name: str, value: int) -> None:
        value = int(value)
        names = [n for n, _ in self._machine._now.registers(self.number)]
        bits = 128 if name + ".lo" in names else 64
        if not -(1 << (bits - 1)) <= value < 1 << bits:
            raise Error(f"register {name}: {value} does not fit {bits} bits")
        value &= (1 << bits) - 1
        if bits == 64:
            self._machine._now.set_register(self.number, name, value)
            return
        for half in (".lo", ".hi"):
            self._machine._now.set_register(self.number, name + half, value & (1 << 64) - 1)
            value >>= 64

    def __repr__(self) -> str:
        return f"<gpusim.Core {self.number}: {self.state}>"


class Cores:
    """The cores of a machine: ``machine.cores[3]``."""

    def __init__(self, machine: "Machine", count: int) -> None:
        self._machine = machine
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, number: int) -> Core:
        if not -self._count <= number < self._count:
            raise IndexError(f"core {number}: there are 0 to {self._count - 1}")
        return Core(self._machine, number % self._count)

    def __iter__(self) -> Iterator[Core]:
        return (Core(self._machine, i) for i in range(self._count))


class Machine:
    """A program on simulated cores that goes on when it is told to.

    program: a static ELF file or a module, as the command takes it.
    args: its arguments; with ``entry``, the function's: integers, floats, "&SYMBOL", "@core".
    stdin: None (empty), bytes, text, "pass" (this process's), or a file.
    stdout, stderr: "capture" (``output``, ``errors``), "pass", None (thrown away), or a file.
    stats: gather what ``Result.stats`` has; a path: and write it there.
    on_translation(block), on_blocks(core, blocks), on_accesses(core, accesses),
        on_synchronisation(core, accesses): functions that see what the program does, as plug-ins do
        (docs/howto/plugin.md). Arrays are copies. An exception ends the run and is raised.
    Other keywords: ``gpusim.options()``.

    Use it in a ``with`` statement, or call ``close()``: it holds the guest's memory.
    """

    def __init__(self, program: Any, args: Iterable[Any] = (), *, stdin: Any = None,
                 stdout: Any = "capture", stderr: Any = "capture", stats: Any = True,
                 profile: Any = None, per_core: bool = False,
                 on_translation: Optional[Callable[[Dict[str, Any]], Any]] = None,
                 on_blocks: Optional[Callable[[int, "numpy.ndarray"], Any]] = None,
                 on_accesses: Optional[Callable[[int, "numpy.ndarray"], Any]] = None,
                 on_synchronisation: Optional[Callable[[int, "numpy.ndarray"], Any]] = None,
                 **options: Any) -> None:
        self._machine: Optional[_gpusim.Machine] = None
        self._files: Optional[StandardFiles] = None
        self._result: Optional[Result] = None
        self._goes_on = True
        self._folder: Optional[tempfile.TemporaryDirectory] = None
        check_keywords(options, _OWN, "Machine")
        functions = {name[3:]: f for name, f in zip(_CALLBACKS, (
            on_translation, on_blocks, on_accesses, on_synchronisation)) if f is not None}
        for name, function in functions.items():
            if not callable(function):
                raise Error(f"on_{name}={function!r}: expected a function")
        options["stats"] = None if isinstance(stats, bool) else stats
        if profile is True:
            self._folder = tempfile.TemporaryDirectory(prefix="gpusim-")
            profile = os.path.join(self._folder.name, "profile.json")
        options["profile"] = profile
        self._has_caches = options.get("caches") is not None
        self._gathers = stats is not False and stats is not None
        words, guest_args = command_words(program, args, options)
        self._files = StandardFiles(stdin, stdout, stderr)
        try:
            self._machine = _gpusim.Machine(words, guest_args, self._files.numbers, self._gathers,
                                            bool(per_core), functions)
        except BaseException:
            self._files.close()
            raise
        self.isa: str = self._machine.isa()
        self.backend: str = self._machine.backend()
        self._core_count: int = self._machine.cores()
        self._messages: List[str] = []

    # --- running

    def step(self, instructions: Optional[int] = None) -> bool:
        """Runs about so many instructions of each core, or one slice. False: the run has ended.

        Cores stop at ends of basic blocks, so they may execute some instructions more. While all
        cores wait for time to pass, that takes none of the instructions.
        """
        left = _LONGEST if instructions is None else int(instructions)
        if left <= 0:
            raise Error(f"step({instructions}): expected a positive number of instructions")
        machine = self._now
        while self._goes_on and left > 0:
            self._goes_on, done = machine.step(left)
            left = 0 if instructions is None and done else left - done
        return self._goes_on

    def run_until(self, condition: Callable[["Machine"], Any], every: Optional[int] = None) -> bool:
        """Runs until ``condition(machine)`` is true (returns True), or to the end (False).

        every: instructions of each core between two looks; None: a slice.
        """
        while not condition(self):
            if not self.step(every):
                return bool(condition(self))
        return True

    def run(self, progress: Optional[Callable[[Progress], Any]] = None,
            progress_every: float = 0.25) -> Result:
        """Runs to the end. ``progress(Progress)`` is called every so many seconds, and at the end;
        if it returns False, that ends the run."""
        next_look = time.monotonic() + progress_every
        while self.step():
            if progress is not None and time.monotonic() >= next_look:
                if progress(self.progress()) is False:
                    break
                next_look = time.monotonic() + progress_every
        if progress is not None:
            progress(self.progress())
        return self.finish()

    def stop(self) -> None:
        """Ends the run at the end of its slice. Any thread may call it, and callbacks."""
        if self._machine is not None:
            self._machine.stop()

    def finish(self) -> Result:
        """Ends the run, if it has not ended, and says what it did. Memory and registers can be read
        until the machine is closed."""
        if self._result is None:
            outcome = self._now.finish()
            self._goes_on = False
            per_core = None
            if self._gathers and not self._has_caches:
                try:
                    per_core = self._now.classes_per_core()
                except ImportError:  # no numpy
                    pass
            profile = None
            if self._folder is not None:
                path = pathlib.Path(self._folder.name, "profile.json")
                profile = json.loads(path.read_text()) if path.exists() else None
            self._result = Result(json.loads(outcome["stats"]), outcome, self.output, self.errors,
                                  self.messages, per_core, profile)
        return self._result

    def close(self) -> None:
        """Gives back memory and files. What has not been finished is lost."""
        if self._machine is not None and not self._machine.closed:
            self._machine.close()
        if self._files is not None:
            self._files.close()
        if self._folder is not None:
            self._folder.cleanup()

    def __enter__(self) -> "Machine":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:  # the interpreter ends, or another thread is in it
            pass

    @property
    def _now(self) -> "_gpusim.Machine":
        if self._machine is None or self._machine.closed:
            raise Error("the machine is closed")
        return self._machine

    @property
    def cores(self) -> Cores:
        """The cores, by number."""
        return Cores(self, self._core_count)

    # --- memory

    def symbol(self, name: str) -> Tuple[int, int]:
        """Address and size in bytes (0: unknown) of a symbol of the program."""
        return self._now.symbol(name)

    def symbolize(self, address: int) -> str:
        """"main+0x10"; the address where no symbol is."""
        return self._now.symbolize(address)

    def disassemble(self, address: int) -> str:
        """The instruction there."""
        return self._now.disassemble(address)

    def _place(self, where: Where) -> Tuple[int, int]:
        return self.symbol(where) if isinstance(where, str) else (int(where), 0)

    def read(self, where: Where, size: Optional[int] = None, core: int = 0) -> bytes:
        """Bytes at an address or a symbol, as the core sees them; without a size, all of it."""
        address, known = self._place(where)
        if size is None:
            size = known
            if size == 0:
                raise Error(f"read({where!r}): how many bytes? The program's file does not say")
        if address < 0 or int(size) < 0 or address >> 64:
            raise Error(f"read({where!r}, {size}): expected an address of 64 bits and a size")
        return self._now.read(core, address, int(size))

    def write(self, where: Where, data: Any, core: int = 0) -> None:
        """Bytes, or a numpy array, to an address or a symbol."""
        address, known = self._place(where)
        raw = memoryview(data).tobytes()
        if known and len(raw) > known:
            raise Error(f"write({where!r}): {len(raw)} bytes do not fit the {known} of the symbol")
        if address < 0 or address >> 64:
            raise Error(f"write({where!r}): expected an address of 64 bits")
        self._now.write(core, address, raw)

    def array(self, where: Where, dtype: Any, shape: Any = None, core: int = 0) -> "numpy.ndarray":
        """A numpy array with a copy of memory; all of a symbol if no shape is told."""
        import numpy

        dtype = numpy.dtype(dtype)
        if shape is None:
            data = self.read(where, core=core)
            if len(data) % dtype.itemsize:
                raise Error(f"array({where!r}): {len(data)} bytes are no multiple of "
                            f"{dtype.itemsize}")
            return numpy.frombuffer(bytearray(data), dtype)
        count = int(numpy.prod(shape))
        data = self.read(where, count * dtype.itemsize, core)
        return numpy.frombuffer(bytearray(data), dtype, count).reshape(shape)

    # --- so far

    @property
    def is_running(self) -> bool:
        """Whether step() would do something."""
        return self._goes_on

    @property
    def alive(self) -> int:
        """How many cores have not ended."""
        return self._now.alive()

    def states(self) -> List[str]:
        """Of all cores: "running", "waiting", "ended"."""
        return [self._now.state(core) for core in range(self._core_count)]

    def classes(self) -> Dict[str, int]:
        """Instructions of all cores so far, by class."""
        return dict(zip(_gpusim.classes, self._now.classes()))

    def classes_per_core(self) -> "numpy.ndarray":
        """The same of each core: an array [cores][classes], in the order of ``gpusim.CLASSES``."""
        return self._now.classes_per_core()

    def block_counts(self) -> "numpy.ndarray":
        """How often each basic block was executed to its end, by its number."""
        return self._now.block_counts()

    @property
    def instructions(self) -> int:
        """Guest instructions of all cores so far."""
        return sum(self._now.classes())

    def progress(self) -> Progress:
        """How far the run is."""
        return Progress(self._core_count, self._core_count - self.alive, self.instructions,
                        self._now.seconds())

    @property
    def output(self) -> bytes:
        """What the guest wrote to its standard output so far, if that is captured."""
        return self._files.captured(0) if self._files else b""

    @property
    def errors(self) -> bytes:
        """The same of standard error."""
        return self._files.captured(1) if self._files else b""

    @property
    def messages(self) -> List[str]:
        """Notes, and reports of cores that stopped, so far."""
        self._messages += self._now.take_messages()
        return list(self._messages)

    def __repr__(self) -> str:
        if self._machine is None or self._machine.closed:
            return "<gpusim.Machine: closed>"
        return f"<gpusim.Machine: {self.alive} of {self._core_count} cores alive, {self.isa}>"


def run(program: Any, args: Iterable[Any] = (), *,
        progress: Optional[Callable[[Progress], Any]] = None, progress_every: float = 0.25,
        **keywords: Any) -> Result:
    """Runs a program to its end.

    Keywords are those of ``Machine``. Ctrl-C ends the run and raises KeyboardInterrupt.
    """
    check_keywords(keywords, _OWN, "run")
    with Machine(program, args, **keywords) as machine:
        return machine.run(progress, progress_every)
