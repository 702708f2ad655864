#!/usr/bin/env python3
"""Random programs that fault at random instructions: what a signal handler finds in its ucontext.

Each function sets all registers, then executes random instructions: arithmetic with flags, floating
point, vectors, loads and stores of which some fault in some iterations, undefined and breakpoint
instructions. The handler prints the signal, address, pc, flags and hashes of all registers, and
skips the instruction. Under gpusim all must be as under qemu-aarch64, interpreted and native.

GPUSIM_SEED replays a run.
"""

import functools
import os
import pathlib
import random
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "qemu"))
import harness  # noqa: E402

COMPILER = "/usr/bin/aarch64-linux-gnu-gcc"
GOOD, BAD, READ_ONLY, STACK = 0x8000000, 0x8004000, 0x8008000, 0x800c000
CONDITIONS = ["eq", "ne", "hs", "lo", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt", "gt", "le"]


class Function:
    """x0: iteration; x26: sometimes bad, x27: always good, x28: bad in few iterations,
    x25: sometimes read-only. x1 .. x19 and v0 .. v31 are free."""

    def __init__(self, rng, number):
        self.rng, self.number, self.label = rng, number, 0
        self.lines = []

    def reg(self, width="x"):
        return f"{width}{self.rng.randint(1, 19)}"

    def plain(self):
        rng, w = self.rng, self.rng.choice("xw")
        r = lambda: self.reg(w)  # noqa: E731
        shift = rng.randint(0, 31)
        condition = rng.choice(CONDITIONS)
        v = lambda: rng.randint(0, 31)  # noqa: E731
        t = rng.choice(["16b", "8h", "4s", "2d"])
        f = rng.choice("sd")
        return rng.choice([
            f"adds {r()}, {r()}, {r()}", f"subs {r()}, {r()}, #{rng.randint(0, 4095)}",
            f"cmp {r()}, {r()}", f"cmn {r()}, {r()}, lsl #{shift}", f"tst {r()}, {r()}",
            f"ands {r()}, {r()}, {r()}", f"bics {r()}, {r()}, {r()}, lsr #{shift}",
            f"adcs {r()}, {r()}, {r()}", f"sbc {r()}, {r()}, {r()}",
            f"ccmp {r()}, {r()}, #{rng.randint(0, 15)}, {condition}",
            f"ccmn {r()}, #{rng.randint(0, 31)}, #{rng.randint(0, 15)}, {condition}",
            f"csel {r()}, {r()}, {r()}, {condition}", f"csinc {r()}, {r()}, {r()}, {condition}",
            f"cset {r()}, {condition}", f"add {r()}, {r()}, {r()}, lsl #{shift}",
            f"sub {r()}, {r()}, {r()}", f"eor {r()}, {r()}, {r()}, ror #{shift}",
            f"orr {r()}, {r()}, {r()}", f"mul {r()}, {r()}, {r()}",
            f"madd {r()}, {r()}, {r()}, {r()}", f"udiv {r()}, {r()}, {r()}",
            f"lsl {r()}, {r()}, {r()}", f"asr {r()}, {r()}, #{shift}",
            f"ubfx {r()}, {r()}, #{shift % 16}, #{1 + shift % 15}", f"clz {r()}, {r()}",
            f"rev {r()}, {r()}", f"mov {r()}, #{rng.randint(0, 65535)}",
            f"umulh {self.reg()}, {self.reg()}, {self.reg()}",
            f"fadd {f}{v()}, {f}{v()}, {f}{v()}", f"fmul {f}{v()}, {f}{v()}, {f}{v()}",
            f"fcmp {f}{v()}, {f}{v()}", f"fdiv d{v()}, d{v()}, d{v()}",
            f"fcsel d{v()}, d{v()}, d{v()}, {condition}", f"scvtf d{v()}, {self.reg()}",
            f"fmov {self.reg()}, d{v()}", f"add v{v()}.{t}, v{v()}.{t}, v{v()}.{t}",
            f"cmhi v{v()}.{t}, v{v()}.{t}, v{v()}.{t}", f"eor v{v()}.16b, v{v()}.16b, v{v()}.16b",
            f"dup v{v()}.4s, {self.reg('w')}", f"umov {self.reg('w')}, v{v()}.h[3]",
            f"fadd v{v()}.4s, v{v()}.4s, v{v()}.4s"])

    def memory(self):
        rng = self.rng
        base = rng.choice(["x25", "x26", "x27", "x28", "x28"])
        offset = 8 * rng.randint(0, 60)
        v = rng.randint(0, 31)
        post = rng.choice([f"[{base}, #{offset}]", f"[{base}, #{offset}]", f"[{base}]"])
        return rng.choice([
            f"ldr {self.reg()}, {post}", f"str {self.reg()}, {post}",
            f"ldrb {self.reg('w')}, {post}", f"strh {self.reg('w')}, {post}",
            f"ldrsw {self.reg()}, {post}", f"ldp x1, x2, [{base}, #{offset % 256}]",
            f"stp {self.reg()}, {self.reg()}, [{base}, #{offset % 256}]",
            f"ldr d{v}, {post}", f"str q{v}, [{base}, #{offset & ~15}]",
            f"ldr q{v}, [{base}, #{offset & ~15}]", f"ldr {self.reg()}, [{base}], #8",
            f"str {self.reg()}, [{base}, #16]!", f"ldr {self.reg()}, [{base}, x20, lsl #3]",
            f"str {self.reg('w')}, [{base}, w20, uxtw #2]", f"ldar {self.reg()}, [{base}]",
            f"ldxr {self.reg()}, [{base}]", f"stlr {self.reg('w')}, [{base}]",
            f"ld1 {{v{v}.4s}}, [{base}]", f"st1 {{v{v}.2d}}, [{base}]",
            f"stp d{v}, d{(v + 1) % 32}, [{base}, #{offset % 256}]"])

    def seldom(self, instruction):
        """In every 32nd iteration."""
        self.label += 1
        name = f".Ls{self.number}_{self.label}"
        return [f"tst x0, #31", f"b.ne {name}", instruction, f"{name}:"]

    def branch(self):
        self.label += 1
        name = f".Lb{self.number}_{self.label}"
        skipped = [self.plain() for _ in range(self.rng.randint(1, 3))]
        how = self.rng.choice([f"b.{self.rng.choice(CONDITIONS)} {name}",
                               f"cbz {self.reg('w')}, {name}",
                               f"tbnz {self.reg('w')}, #{self.rng.randint(0, 31)}, {name}"])
        return [how, *skipped, f"{name}:"]

    def text(self):
        rng = self.rng
        out = [f"function{self.number}:", "stp x29, x30, [sp, #-96]!"]
        out += [f"stp x{r}, x{r + 1}, [sp, #{16 * (1 + i)}]" for i,
                r in enumerate((19, 21, 23, 25, 27))]
        out += ["stp d8, d9, [sp, #-64]!", "stp d10, d11, [sp, #16]", "stp d12, d13, [sp, #32]",
                "stp d14, d15, [sp, #48]", "adrp x9, saved_stack_pointer",
                "mov x10, sp", "str x10, [x9, #:lo12:saved_stack_pointer]",
                f"movz x10, #{STACK >> 16}, lsl #16", f"movk x10, #{(STACK + 0x3000) & 0xffff}",
                "mov sp, x10", "mov x29, #0"]
        for r in range(1, 20):
            out += [f"movz x{r}, #{rng.randint(0, 65535)}, lsl #{rng.choice([0, 16, 48])}",
                    f"movk x{r}, #{rng.randint(0, 65535)}"]
        out += ["and x20, x0, #15", "add x1, x1, x0", "sub x2, x2, x0, lsl #40", "eor x3, x3, x0"]
        for v in range(32):
            out += [f"fmov d{v}, x{rng.randint(1, 19)}"]
        out += [f"movz x27, #{GOOD >> 16}, lsl #16", "mov x26, x27", "mov x25, x27", "mov x28, x27",
                "mov x21, #0", "mov x22, #0", "mov x23, #0", "mov x24, #0",
                f"mov x8, #{rng.randint(3, 63)}", "and x9, x0, #63", f"movz x10, #{BAD - GOOD}",
                "cmp x9, x8", "csel x8, x10, xzr, eq", "add x28, x28, x8",
                f"tst x0, #{rng.choice([1, 3, 7, 15])}",
                f"csel x8, x10, xzr, {rng.choice(['eq', 'ne'])}",
                "cmp x0, #30", "csel x8, x8, xzr, lo", "add x26, x26, x8",
                f"movz x10, #{READ_ONLY - GOOD}", "tst x0, #16", "csel x8, x10, xzr, ne",
                "cmp x0, #40", "csel x8, x8, xzr, lo", "add x25, x25, x8"]
        for _ in range(rng.randint(15, 50)):
            kind = rng.random()
            if kind < 0.6:
                out.append(self.plain())
            elif kind < 0.87:
                out.append(self.memory())
            elif kind < 0.95:
                out += self.branch()
            else:
                out += self.seldom(rng.choice(["udf #1", "brk #2"]))
        out += ["adrp x9, saved_stack_pointer", "ldr x10, [x9, #:lo12:saved_stack_pointer]",
                "mov sp, x10", "msr fpsr, xzr", "ldp d10, d11, [sp, #16]",
                "ldp d12, d13, [sp, #32]",
                "ldp d14, d15, [sp, #48]", "ldp d8, d9, [sp], #64"]
        out += [f"ldp x{r}, x{r + 1}, [sp, #{16 * (1 + i)}]" for i,
                r in enumerate((19, 21, 23, 25, 27))]
        out += ["ldp x29, x30, [sp], #96", "ret"]
        return out


def program(rng, functions):
    lines = [".text"]
    for number in range(functions):
        lines += Function(rng, number).text()
    lines += [".section .rodata", ".balign 8", ".global functions", ".global function_count",
              "functions:"]
    lines += [f".quad function{number}" for number in range(functions)]
    lines += [f"function_count: .word {functions}", '.section .note.GNU-stack,"",@progbits']
    return "\n".join(lines) + "\n"


def main():
    arguments = harness.parse_arguments(__doc__.splitlines()[0], levels="O1")
    count = int(os.environ.get("GPUSIM_FAULT_PROGRAMS", "4"))
    seed = int(os.environ.get("GPUSIM_SEED") or random.SystemRandom().getrandbits(32))
    print(f"replay: GPUSIM_SEED={seed}")
    rng = random.Random(seed)
    arguments.build.mkdir(parents=True, exist_ok=True)
    commands = {}
    for number in range(count):
        source = arguments.build / f"random{number}.S"
        source.write_text(program(rng, 6))
        commands[f"random{number}.elf"] = [COMPILER, "-O1", "-static", "-fno-pie", "-no-pie",
                                           HERE / "driver.c", source]
    plugin = harness.build_plugin(arguments.build.parent / "plugin")
    harness.build_all(commands, harness.compiler_version(COMPILER), arguments.build, arguments.jobs)
    cases = []
    for name in commands:
        elf = arguments.build / name
        oracle = functools.cache(functools.partial(harness.run_qemu, plugin, elf))
        for engine in arguments.engines if arguments.engines != ["simd"] else ("simd", "scalar"):
            for mode in arguments.modes:
                def check(elf=elf, oracle=oracle, mode=mode, engine=engine):
                    return harness.compare(oracle(), harness.run_gpusim(
                        arguments.gpusim, elf, mode, (), arguments.options, engine=engine), mode)
                cases.append(harness.Case(name, "O1", mode, check, engine))
    return harness.run_cases(cases, [], arguments.jobs)


if __name__ == "__main__":
    sys.exit(main())
