"""What the differential runners share: the two emulators, skip lists, and the closing report."""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import zlib
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent


@dataclass(frozen=True)
class Oracle:
    """An emulator, and the CPU that gpusim's own start-up shows its guests, too."""

    program: str
    cpu: str


ORACLES = {"aarch64": Oracle("/usr/bin/qemu-aarch64", "cortex-a57"),  # advertises no LSE atomics
           "riscv64": Oracle("/usr/bin/qemu-riscv64", "rv64,v=true,vext_spec=v1.0"),
           "riscv32": Oracle("/usr/bin/qemu-riscv32", "rv32")}
ORACLE_CPU = ORACLES["aarch64"].cpu
LANES = 64
MODES = {"one": ["--cores", "1"], "lanes": ["--cores", str(LANES), "--memory", "private"]}
# What executes: `interpreted` is simd without native code.
ENGINES = {"simd": ["--backend", "simd"], "interpreted": ["--backend", "simd", "--no-native"],
           "scalar": ["--backend", "scalar"], "cuda": ["--backend", "cuda"]}
# Up to how many instructions of one core a run is worth its time; otherwise, any number is.
MOST_INSTRUCTIONS = {("simd", "one"): 2_000_000_000, ("simd", "lanes"): 30_000_000,
                     ("interpreted", "one"): 50_000_000, ("interpreted", "lanes"): 5_000_000,
                     ("scalar", "one"): 50_000_000, ("scalar", "lanes"): 2_000_000}


def is_worth_it(engine, mode, guest_instructions):
    return guest_instructions <= MOST_INSTRUCTIONS.get((engine, mode), guest_instructions)


@dataclass
class Result:
    """One run: guest_instructions is None when the emulator did not get as far as counting."""

    status: int | str
    stdout: bytes
    stderr: bytes
    guest_instructions: int | None


# Of the environment gpusim sees this alone (tests/cuda_emulated).
EMULATED = {name: value for name, value in os.environ.items()
            if name.startswith("GPUSIM_EMULATED")}
if EMULATED:
    EMULATED["PATH"] = os.defpath  # of the compiler of regions


def execute(command, timeout_s, cwd=None, env=None):
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=timeout_s, cwd=cwd,
                              env=env or {})
    except subprocess.TimeoutExpired as late:
        return f"timeout after {timeout_s} s", late.stdout or b"", late.stderr or b""
    return done.returncode, done.stdout, done.stderr


def read_count(path):
    try:
        return json.loads(path.read_text())["guest_instructions"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


class Scratch:
    """A file name per thread, in memory where the machine has that."""

    def __init__(self):
        base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self._folder = tempfile.TemporaryDirectory(prefix="gpusim-test-", dir=base)

    def path(self):
        path = pathlib.Path(self._folder.name) / f"{threading.get_ident()}.json"
        path.unlink(missing_ok=True)
        return path


SCRATCH = Scratch()


def build_plugin(folder):
    subprocess.run([HERE / "build_plugin", folder], check=True)
    return pathlib.Path(folder).resolve() / "libinsn_count.so"


def run_qemu(plugin, program, args=(), cpu=None, timeout_s=120, cwd=None, isa="aarch64"):
    count = SCRATCH.path()
    oracle = ORACLES[isa]
    command = [oracle.program, "-cpu", cpu or oracle.cpu, "-plugin", f"{plugin},out={count}",
               str(program), *args]
    status, stdout, stderr = execute(command, timeout_s, cwd)
    # A process that a signal killed: the shell's notation, which is gpusim's.
    if isinstance(status, int) and status < 0:
        status = 128 - status
    return Result(status, stdout, stderr, read_count(count))


def coverage_options():
    """For tests/isa/a64/coverage: where gpusim says which instructions were executed."""
    path = os.environ.get("GPUSIM_ISA_COVERAGE")
    return ["--isa-coverage", path] if path else []


def run_gpusim(gpusim, program, mode, args=(), options=(), timeout_s=120, cwd=None, engine="simd"):
    stats = SCRATCH.path()
    command = [str(gpusim), "run", *MODES[mode], *ENGINES[engine], *coverage_options(), "--quiet",
               "--stats", str(stats), *options, str(program)]
    if args:
        command += ["--", *args]
    return Result(*execute(command, timeout_s, cwd, EMULATED), read_count(stats))


def first_line(text):
    lines = text.decode(errors="replace").strip().splitlines()
    return lines[0][:160] if lines else ""


def error_line(text):
    lines = text.decode(errors="replace").splitlines()
    errors = [line for line in lines if "rror" in line or "undefined reference" in line]
    return (errors or lines or [""])[0][:200]


def compare(expected, got, mode):
    """Says in one line how a run differs from the oracle's; None when it does not."""
    copies = LANES if mode == "lanes" else 1
    if got.status != expected.status:
        return f"status {got.status}, expected {expected.status}: {first_line(got.stderr)}"
    if expected.stdout is not None:
        # Lanes may interleave their writes anywhere: compare how often each byte occurs.
        same = (got.stdout == expected.stdout if copies == 1 else
                sorted(got.stdout) == sorted(expected.stdout * copies))
        if not same:
            return f"output differs: {describe_difference(expected.stdout * copies, got.stdout)}"
    if expected.guest_instructions is None and expected.status > 128:
        return None  # a signal ended QEMU before its plug-in could tell
    if got.guest_instructions is None:
        return f"no guest_instructions in --stats: {first_line(got.stderr)}"
    if got.guest_instructions != expected.guest_instructions * copies:
        difference = got.guest_instructions - expected.guest_instructions * copies
        return (f"instructions {got.guest_instructions}, expected "
                f"{expected.guest_instructions * copies} ({difference:+d})")
    return None


def describe_difference(expected, got):
    if len(expected) != len(got):
        lengths = f"{len(got)} bytes instead of {len(expected)}; "
    else:
        lengths = ""
    expected_lines, got_lines = expected.splitlines(), got.splitlines()
    for number, (left, right) in enumerate(zip(expected_lines, got_lines), 1):
        if left != right:
            return f"{lengths}line {number}: {right[:60]!r} instead of {left[:60]!r}"
    return f"{lengths}one is the beginning of the other"


def read_skips(path):
    """Lines `NAME LEVEL MODE # reason`, `*` for any level or mode. A reason is required."""
    skips = []
    if not path.exists():
        return skips
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        entry, _, reason = line.partition("#")
        fields = entry.split()
        if len(fields) != 3 or not reason.strip():
            sys.exit(f"{path}:{number}: expected `NAME LEVEL MODE # reason`")
        skips.append((*fields, reason.strip()))
    return skips


def is_skipped(skips, name, level, mode):
    return any(name == n and l in ("*", level) and m in ("*", mode) for n, l, m, _ in skips)


@dataclass
class Case:
    """`check` gives None when it passes, else why not."""

    name: str
    level: str
    mode: str
    check: object
    engine: str = "simd"

    def title(self):
        return f"{self.name} -{self.level} {self.mode} {self.engine}"


def run_cases(cases, skips, jobs):
    """Runs all, prints failures, then `N passed, N failed, N skipped`; gives the exit status."""
    passed = failed = skipped = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for case, difference in zip(cases, pool.map(lambda case: case.check(), cases)):
            expected_to_fail = is_skipped(skips, case.name, case.level, case.mode)
            if difference is None and expected_to_fail:
                failed += 1
                print(f"FAIL {case.title()}: passes, but is in the skip list: take it out",
                      flush=True)
            elif difference is None:
                passed += 1
            elif expected_to_fail:
                skipped += 1
            else:
                failed += 1
                print(f"FAIL {case.title()}: {difference}", flush=True)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


def build_all(commands, common, folder, jobs):
    """Runs the compiler commands; a program that cannot be built ends the run."""
    problems = try_build(commands, common, folder, jobs)
    if problems:
        sys.exit("cannot build guest programs:\n  " + "\n  ".join(
            f"{name}: {why}" for name, why in list(problems.items())[:20]))


def try_build(commands, common, folder, jobs):
    """Runs the compiler commands {output: command} whose output is missing or out of date.

    A command and the files named in it, and `common` (the compiler's version, headers), make up
    the digest that tells. Outputs are named relative to `folder`. Gives {output: error}, also for
    those that failed with the same input before.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stamps = folder / "digests.json"
    try:
        known = json.loads(stamps.read_text())
    except (OSError, ValueError):
        known = {}

    def build(item):
        name, command = item
        digest = hashlib.sha256(common.encode())
        for word in map(str, command):
            digest.update(word.encode() + b"\0")
            if word.endswith((".c", ".cc", ".S")):
                digest.update(pathlib.Path(word).read_bytes())
        digest = digest.hexdigest()
        before, _, problem = known.get(name, "").partition(" ")
        if before == digest and (problem or (folder / name).exists()):
            return name, problem
        partial = folder / f"{name}.new"
        try:
            done = subprocess.run([*command, "-o", partial], capture_output=True, cwd=folder)
        finally:
            (folder / name).unlink(missing_ok=True)
        problem = ""
        if done.returncode == 0:
            partial.rename(folder / name)
        else:
            problem = error_line(done.stderr) or f"status {done.returncode}"
        known[name] = f"{digest} {problem}"
        return name, problem

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        problems = {name: problem for name, problem in pool.map(build, commands.items()) if problem}
    stamps.write_text(json.dumps(known))
    return problems


def sampled(items, every, seed=0):
    """Each `every`th in a draw by name, so that other levels draw others. A seed has its own
    draw."""
    return [item for item in items if zlib.crc32(item.encode(), seed) % every == 0]


def draw(arguments, names, level=""):
    """The set of those that --sample and --rotate let run at a level."""
    items = {f"{name} {level}": name for name in names}
    return {items[item] for item in sampled(items, arguments.sample, arguments.seed)}


def seed_of(rotate):
    """GPUSIM_SEED or a new one, which it prints; 0, always the same draw, without --rotate."""
    if not rotate:
        return 0
    seed = int(os.environ.get("GPUSIM_SEED") or random.SystemRandom().getrandbits(32))
    print(f"replay: GPUSIM_SEED={seed}", flush=True)
    return seed


def compiler_version(compiler):
    return subprocess.run([compiler, "--version"], capture_output=True, check=True,
                          text=True).stdout.splitlines()[0]


def parse_arguments(description, levels, more=None):
    """`more` may add a runner's own arguments to the parser."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--gpusim", type=pathlib.Path, required=True, help="the program to test")
    parser.add_argument("--build", type=pathlib.Path, required=True,
                        help="folder for guest programs")
    parser.add_argument("--levels", default=levels, help="e.g. O0,O2")
    parser.add_argument("--modes", default="one,lanes",
                        help="one: one core; lanes: 64 private ones")
    parser.add_argument("--engines", default="simd", help=f"of {','.join(ENGINES)}")
    parser.add_argument("--sample", type=int, default=1, metavar="N",
                        help="about each Nth program only, others at other levels")
    parser.add_argument("--rotate", action="store_true",
                        help="--sample draws others each time; GPUSIM_SEED repeats a draw")
    parser.add_argument("--only", default="*", help="pattern of names, e.g. 'pr4*'")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--option", action="append", default=[], dest="options",
                        help="passed on to `gpusim run`, e.g. --option=--slice=100")
    if more:
        more(parser)
    arguments = parser.parse_args()
    if not os.access(arguments.gpusim, os.X_OK):
        sys.exit(f"{arguments.gpusim}: not a program; build the target gpusim first")
    arguments.seed = seed_of(arguments.rotate)
    arguments.gpusim = arguments.gpusim.resolve()
    arguments.build = arguments.build.resolve()
    arguments.levels = arguments.levels.split(",")
    arguments.modes = arguments.modes.split(",")
    arguments.engines = arguments.engines.split(",")
    return arguments
