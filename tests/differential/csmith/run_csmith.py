#!/usr/bin/env python3
"""Random C programs of csmith at every level: checksum and instruction count as under QEMU.

A run takes programs from a random seed on, which it prints, until --programs of them were
compared. A program that runs longer than a limit, under QEMU at any level, does not count.
--seed N --programs 1 replays the program N; its source stays in the build folder if it fails.
"""

import concurrent.futures
import functools
import itertools
import os
import pathlib
import random
import subprocess
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "qemu"))
import harness  # noqa: E402

COMPILER = "/usr/bin/{isa}-linux-gnu-gcc"
RUNTIME = HERE.parent / "torture" / "runtime"
INCLUDE = "/usr/include/csmith"
GENERATE = ["/usr/bin/csmith", "--no-packed-struct", "--max-funcs", "6", "--no-argc"]
MORE = ["--float", "--builtins", "--disable-builtin-kinds", "x86"]
# ... for each third seed: floating point, bit counts and the like.
QEMU_TIMEOUT_S = 10
# Keeps a run short; a program is dropped by what it executes, not by how fast the machine is.
MOST_INSTRUCTIONS = 20_000_000
TIMEOUT_S = 300


def add_arguments(parser):
    parser.add_argument("--programs", type=int, default=50)
    parser.add_argument("--seed", type=int, default=None,
                        help="of the first program (or GPUSIM_SEED; random otherwise)")
    parser.add_argument("--isa", choices=harness.ORACLES, default="aarch64")


def compile_program(source, compiler, level, objects):
    elf = source.with_suffix(f".{level}.elf")
    command = [compiler, f"-{level}", "-w", "-I", INCLUDE, "-static", "-nostdlib",
               "-nostartfiles", "-fno-pie", "-no-pie", source, *objects, "-lgcc", "-o", elf]
    done = subprocess.run(command, capture_output=True)
    # Of some programs GNU ld 2.40 makes accesses relative to gp that then are too far from it.
    if b"R_RISCV_GPREL" in done.stderr:
        done = subprocess.run([*command, "-Wl,--no-relax"], capture_output=True)
    if done.returncode != 0:
        raise RuntimeError(f"{source}: {harness.error_line(done.stderr)}")
    return elf


def try_seed(seed, arguments, plugin, objects):
    """Gives the number of comparisons and what differed; (0, []) for a program that runs long."""
    source = arguments.build / f"{seed}.c"
    generate = [*GENERATE, *(MORE if seed % 3 == 0 else []), "--seed", str(seed)]
    try:
        # csmith itself may search for very long, too. It writes a file into its current folder.
        text = subprocess.run(generate, capture_output=True, check=True, timeout=QEMU_TIMEOUT_S,
                              cwd=arguments.build).stdout
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        return 0, []
    source.write_bytes(text)
    elves, oracles, compared, failures = {}, {}, 0, []
    try:
        for level in arguments.levels:
            elf = elves[level] = compile_program(source, arguments.compiler, level, objects)
            oracle = oracles[level] = harness.run_qemu(plugin, elf, timeout_s=QEMU_TIMEOUT_S,
                                                       isa=arguments.isa)
            if oracle.status != 0 or oracle.guest_instructions > MOST_INSTRUCTIONS:
                return 0, []
        for level, engine, mode in itertools.product(arguments.levels, arguments.engines,
                                                     arguments.modes):
            if not harness.is_worth_it(engine, mode, oracles[level].guest_instructions):
                continue
            got = harness.run_gpusim(arguments.gpusim, elves[level], mode, timeout_s=TIMEOUT_S,
                                     options=arguments.options, engine=engine)
            compared += 1
            difference = harness.compare(oracles[level], got, mode)
            if difference:
                failures.append(f"--seed {seed} -{level} {mode} {engine}: {difference}")
        return compared, failures
    finally:
        for elf in elves.values() if not failures else ():
            elf.unlink(missing_ok=True)
        if not failures:
            source.unlink(missing_ok=True)


def main():
    arguments = harness.parse_arguments(__doc__.splitlines()[0], levels="O0,O1,O2,O3",
                                        more=add_arguments)
    plugin = harness.build_plugin(arguments.build.parent / "plugin")
    arguments.compiler = COMPILER.format(isa=arguments.isa)
    # ISAs share no file: their runs may overlap.
    if arguments.isa != "aarch64":
        arguments.build = arguments.build / arguments.isa
    plain = [arguments.compiler, "-fno-pie", "-no-pie", "-O2", "-ffreestanding",
             "-ffunction-sections",
             "-fno-tree-loop-distribute-patterns", "-c"]
    harness.build_all({f"{name}.o": [*plain, RUNTIME / f"{name}{suffix}"]
                       for name, suffix in (("rt", ".c"), ("crt0", ".S"))},
                      harness.compiler_version(arguments.compiler), arguments.build, arguments.jobs)
    objects = [arguments.build / "crt0.o", arguments.build / "rt.o"]
    first = arguments.seed
    if first is None:
        first = int(os.environ.get("GPUSIM_SEED", random.randrange(1_000_000_000)))
    print(f"csmith from seed {first} on; --seed N --programs 1 replays one program", flush=True)

    seeds, lock = itertools.count(first), threading.Lock()
    counted = {"programs": 0, "dropped": 0, "passed": 0, "failed": 0}
    # A replayed program that runs too long shall not lead to the next one.
    most = 1 if arguments.programs == 1 else 3 * arguments.programs
    one = functools.partial(try_seed, arguments=arguments, plugin=plugin, objects=objects)

    def work():
        while True:
            with lock:
                tried = counted["programs"] + counted["dropped"]
                if counted["programs"] >= arguments.programs or tried >= most:
                    return
                seed = next(seeds)
                counted["programs"] += 1
            compared, failures = one(seed)
            with lock:
                if not compared:
                    counted["programs"] -= 1
                    counted["dropped"] += 1
                counted["passed"] += compared - len(failures)
                counted["failed"] += len(failures)
                for failure in failures:
                    print("FAIL", failure, flush=True)

    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for worker in [pool.submit(work) for _ in range(arguments.jobs)]:
            worker.result()
    print(f"{counted['programs']} programs, {counted['dropped']} left out that run long: "
          f"{counted['passed']} passed, {counted['failed']} failed")
    return 1 if counted["failed"] or counted["programs"] < arguments.programs else 0


if __name__ == "__main__":
    sys.exit(main())
