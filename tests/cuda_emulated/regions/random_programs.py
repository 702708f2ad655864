#!/usr/bin/env python3
"""Random programs against compiled regions: loops with irregular control flow, and faults in them.

  random_programs.py --gpusim FILE --build FOLDER [--programs N] [--modes one,lanes]

Functions as in tests/differential/faults, each around a loop whose turns take other ways:
branches forward, loops within of random length, jumps through registers, calls, and a second entry
in the middle. Their instructions fault in some turns; a handler prints what it finds and goes on.
Compared:

- status, output and instructions with qemu-aarch64, with slices of random length, which end
  anywhere in a region;
- with a random limit of instructions per core, which also ends in one: all of --stats with backend
  scalar.

GPUSIM_SEED replays a run.
"""

import functools
import json
import os
import pathlib
import random
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
DIFFERENTIAL = HERE.parents[1] / "differential"
sys.dont_write_bytecode = True
sys.path[:0] = [str(DIFFERENTIAL / "qemu"), str(DIFFERENTIAL / "faults")]
import harness  # noqa: E402
import run_faults  # noqa: E402

TIMEOUT_S = 3600  # compilers of regions take minutes on a busy machine
# Not the run's, but this machine's; and what slices change.
NOT_COMPARED = {"seconds", "mips", "backend", "device", "divergence", "micro_ops"}


class Loop(run_faults.Function):
    """x21 to x24 are 0 in the function that this makes a loop of: x23 counts turns, x24 those of a
    loop within, x21 and x22 are for jumps."""

    def new_label(self):
        self.label += 1
        return f".Ll{self.number}_{self.label}"

    def loop_within(self):
        name = self.new_label()
        body = [self.plain() for _ in range(self.rng.randint(1, 4))]
        if self.rng.random() < 0.4:
            body += self.branch()
        return [f"and x24, {self.reg()}, #7", f"{name}:", *body, "subs x24, x24, #1",
                f"b.pl {name}", "mov x24, #0"]

    def jump(self):
        table, end = self.new_label(), self.new_label()
        cases = [self.new_label() for _ in range(4)]
        lines = [f"and x21, {self.reg()}, #3", f"adr x22, {table}", "add x22, x22, x21, lsl #2",
                 "br x22", f"{table}:", *(f"b {case}" for case in cases)]
        for case in cases:
            lines += [f"{case}:", self.plain(), *([f"b {end}"] if self.rng.random() < 0.7 else [])]
        return [*lines, f"{end}:", "mov x21, #0", "mov x22, #0"]

    def text(self):
        lines = super().text()
        first = lines.index("add x25, x25, x8") + 1
        last = next(i for i in range(first, len(lines))
                    if lines[i] == "adrp x9, saved_stack_pointer")
        body = lines[first:last]
        front, middle = self.new_label(), self.new_label()
        # Not within what was drawn as one piece: behind an instruction that is no label or branch.
        places = [i for i in range(1, len(body)) if not body[i].startswith((".L", "b.", "udf"))
                  and not body[i - 1].startswith(("b.", "tst", "cb", "tb"))]
        where = sorted(self.rng.sample(places, min(4, len(places))), reverse=True)
        for place in where:
            kind = self.rng.choice(["loop", "jump", "call", "middle"])
            if kind == "loop":
                body[place:place] = self.loop_within()
            elif kind == "jump":
                body[place:place] = self.jump()
            elif kind == "call":
                body[place:place] = [f"bl leaf{self.number}"]
        place = where[-1]
        body[place:place] = [f"{middle}:"]
        turns = self.rng.randint(2, 9)
        begin = [f"mov x23, #{turns}", f"tbnz x0, #{self.rng.randint(0, 2)}, {middle}", f"{front}:"]
        end = ["sub x23, x23, #1", f"cbnz x23, {front}"]
        leaf = [f"leaf{self.number}:", self.plain(), self.plain(), "ret"]
        return [*leaf, *lines[:first], *begin, *body, *end, *lines[last:]]


def program(rng, functions):
    lines = [".text"]
    for number in range(functions):
        lines += Loop(rng, number).text()
    lines += [".section .rodata", ".balign 8", ".global functions", ".global function_count",
              "functions:", *(f".quad function{number}" for number in range(functions)),
              f"function_count: .word {functions}", '.section .note.GNU-stack,"",@progbits']
    return "\n".join(lines) + "\n"


def stats_of(gpusim, elf, mode, engine, options):
    with tempfile.TemporaryDirectory() as folder:
        stats = pathlib.Path(folder) / "stats.json"
        command = [str(gpusim), "run", *harness.MODES[mode], *harness.ENGINES[engine], "--quiet",
                   "--per-core", "--stats", str(stats), *options, str(elf)]
        status, stdout, stderr = harness.execute(command, TIMEOUT_S, env=harness.EMULATED)
        try:
            counts = json.loads(stats.read_text())
        except (OSError, ValueError):
            return status, stdout, stderr
    counts = {k: v for k, v in counts.items() if k not in NOT_COMPARED}
    return status, sorted(stdout.splitlines()), counts


def first_difference(want, got):
    if want[0] != got[0]:
        return f"status {got[0]}, {want[0]} on scalar"
    if want[1] != got[1]:
        return "other output than on scalar"
    for key in want[2]:
        if want[2][key] != got[2].get(key):
            return f"{key}: {str(got[2].get(key))[:150]}, {str(want[2][key])[:150]} on scalar"
    return "more in --stats than on scalar"


def main():
    def more(parser):
        parser.add_argument("--programs", type=int, default=2)

    arguments = harness.parse_arguments(__doc__.splitlines()[0], levels="O1", more=more)
    seed = int(os.environ.get("GPUSIM_SEED") or random.SystemRandom().getrandbits(32))
    print(f"replay: GPUSIM_SEED={seed}", flush=True)
    rng = random.Random(seed)
    arguments.build.mkdir(parents=True, exist_ok=True)
    commands = {}
    for number in range(arguments.programs):
        source = arguments.build / f"loops{number}.S"
        source.write_text(program(rng, 3))
        commands[f"loops{number}.elf"] = [run_faults.COMPILER, "-O1", "-static", "-fno-pie",
                                          "-no-pie", DIFFERENTIAL / "faults/driver.c", source]
    plugin = harness.build_plugin(arguments.build.parent / "plugin")
    harness.build_all(commands, harness.compiler_version(run_faults.COMPILER), arguments.build,
                      arguments.jobs)
    cases = []
    for name in commands:
        elf = arguments.build / name
        oracle = functools.cache(functools.partial(harness.run_qemu, plugin, elf))
        for mode in arguments.modes:
            slices = f"--slice={rng.choice([300, 1000, 3000, 20000]) + rng.randint(0, 50)}"
            limit = f"--max-instructions={rng.randint(50_000, 400_000)}"

            def check(elf=elf, oracle=oracle, mode=mode, slices=slices):
                got = harness.run_gpusim(arguments.gpusim, elf, mode, (), [slices],
                                         timeout_s=TIMEOUT_S, engine="cuda")
                return harness.compare(oracle(), got, mode)

            def check_limit(elf=elf, mode=mode, slices=slices, limit=limit):
                want = stats_of(arguments.gpusim, elf, mode, "scalar", [limit])
                got = stats_of(arguments.gpusim, elf, mode, "cuda", [limit, slices])
                return None if want == got else first_difference(want, got)

            cases.append(harness.Case(f"{name} {slices}", "O1", mode, check, "cuda"))
            cases.append(harness.Case(f"{name} {slices} {limit}", "O1", mode, check_limit, "cuda"))
    return harness.run_cases(cases, [], arguments.jobs)


if __name__ == "__main__":
    sys.exit(main())
