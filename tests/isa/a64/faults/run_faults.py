#!/usr/bin/env python3
"""Random programs that fault: signal, pc and number of instructions, under QEMU and gpusim.

Every program is a stretch of work - straight code, calls, loops that become native code - with one
instruction in it that faults, at once or in a late round of a loop. All are cases of one ELF file,
chosen by its argument. Registers and memory at faults are compared by insn_oracle.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[2] / "differential" / "qemu"))
import harness  # noqa: E402

HANDLER_INSTRUCTIONS = 14

# Where nothing is mapped, in both.
NOWHERE = 0x2000_0000_0000

ENGINES = {
    "simd": ["--backend", "simd"],
    "simd, interpreted": ["--backend", "simd", "--no-native"],
    "scalar": ["--backend", "scalar"],
}
if os.environ.get("GPUSIM_TEST_BACKENDS") == "cuda":
    ENGINES = {"cuda": ["--backend", "cuda"]}
MODES = {"one": ["--cores", "1"], "lanes": ["--cores", "64", "--memory", "private"]}

# X0 to X7 and V0 to V7 hold data, X20 a buffer; X19 counts rounds; X13 to X15 are where faults are.
PIECES = """
add {d}, {n}, {m}
sub {d}, {n}, #{i}
eor {d}, {n}, {m}, ror #{s}
madd {d}, {n}, {m}, {a}
udiv {d}, {n}, {m}
adds {d}, {n}, {m}
subs {d}, {n}, #{i}
csinc {d}, {n}, {m}, lt
ldr {d}, [x20, #{o}]
str {n}, [x20, #{o}]
ldp {d}, x8, [x20, #{o}]
stp {n}, {m}, [x20, #{o}]
ldrsb {d}, [x20, #{i}]
strh {w}, [x20, #{o}]
ldr {q}, [x20, #{v}]
str {q}, [x20, #{v}]
fadd {q2}, {q2}, v3.4s
mul {q2}, {q2}, v5.4s
fcvtzs {d}, d2
ldaxr {d}, [x20]
clz {d}, {n}
bl helper
""".split("\n")[1:-1]

# Instruction, signal, and what pc to expect: where it is, or where it jumps to.
FAULTS = [
    ("ldr x1, [x13]", 11, None), ("ldr w1, [x13], #4", 11, None),
    ("ldrsh x1, [x13, #2]!", 11, None),
    ("ldp x1, x2, [x13], #16", 11, None), ("ldr q1, [x13]", 11, None),
    ("ld1 {{v0.2d-v3.2d}}, [x13], #64", 11, None), ("ld4 {{v4.b-v7.b}}[3], [x13]", 11, None),
    ("ldxr x1, [x13]", 11, None), ("str x1, [x13, #8]!", 11, None), ("stp x1, x2, [x13]", 11, None),
    ("st2 {{v0.4s, v1.4s}}, [x13]", 11, None), ("str w1, [x14]", 11, None),
    ("strb w1, [x14]", 11, None),
    ("ldaxr x1, [x15]", 7, None), ("ldxr w1, [x15]", 7, None), ("ldaxrh w1, [x15]", 7, None),
    ("br x13", 11, NOWHERE), ("blr x13", 11, NOWHERE), ("ret x13", 11, NOWHERE),
    ("br x20", 11, "buffer"), ("br x12", 7, "_start+2"), ("udf #{i}", 4, None),
    ("brk #{i}", 5, None), ("msr tpidr_el1, x0", 4, None), ("mrs x1, sctlr_el1", 4, None),
    (".inst 0xffffffff", 4, None), ("eret", 4, None), ("hlt #1", 4, None),
]


def registers(rng):
    names = {key: f"x{rng.randrange(8)}" for key in "dnma"}
    q = rng.randrange(8)
    return {**names, "w": f"w{rng.randrange(8)}", "q": f"q{q}", "q2": f"v{q}.4s",
            "i": rng.randrange(256), "s": rng.randrange(64), "o": 8 * rng.randrange(64),
            "v": 16 * rng.randrange(64)}


def pieces(rng, count):
    lines = []
    for _ in range(count):
        lines.append("  " + rng.choice(PIECES).format(**registers(rng)))
        if rng.random() < 0.1:  # around the next one, or not
            lines += [f"  cbz {registers(rng)['n']}, 1f", "  nop", "1:"]
    return lines


class Case:
    """One program: its text, the fault's signal and pc (a symbol's name, or a number)."""

    def __init__(self, number, seed):
        rng = random.Random(f"{seed} {number}")
        self.number = number
        instruction, self.signal, target = rng.choice(FAULTS)
        self.instruction = instruction.format(**registers(rng))
        at = f"fault_{number}"
        self.jumps = target is not None
        self.pc = target if self.jumps else at
        here = [f"{at}: {self.instruction}"]
        lines = [f"case_{number}:"]
        for i in range(8):
            lines.append(f"  ldr x{i}, ={rng.getrandbits(rng.choice([8, 32, 64])):#x}")
        lines += pieces(rng, rng.randrange(12))
        if rng.random() < 0.6:  # in a loop, in one of its rounds
            rounds = rng.choice([1, 3, 100, 1000, 4000])
            lines += [f"  mov x19, #{rounds}", f"round_{number}:", *pieces(rng, rng.randrange(10)),
                      f"  cmp x19, #{rng.randrange(rounds) + 1}", f"  b.ne past_{number}", *here,
                      f"past_{number}:", *pieces(rng, rng.randrange(6)), "  subs x19, x19, #1",
                      f"  b.ne round_{number}"]
        else:
            lines += here
        lines += pieces(rng, rng.randrange(6)) + ["  b finish", "  .ltorg"]
        self.text = lines

    def __str__(self):
        return f"program {self.number} ({self.instruction})"


def assembly(cases):
    start = """
  .text
  .global _start
_start:
  ldr x1, [sp, #16]
  mov x0, #0
  mov x3, #10
1: ldrb w2, [x1], #1
  cbz w2, 2f
  sub w2, w2, #'0'
  madd x0, x0, x3, x2
  b 1b
2: lsr x19, x0, #1  // the program; an odd number: without handlers
  mov x5, #134
  mov x6, #172
  tst x0, #1
  csel x8, x5, x6, eq
  adr x1, action
  mov x2, #0
  mov x3, #8
  .irp signal, 4, 5, 7, 11
  mov x0, #\\signal
  svc #0
  .endr
  mov x0, x19
  ldr x20, =buffer
  ldr x13, =%#x
  adr x14, _start
  add x15, x20, #1
  add x12, x14, #2
  ldr x1, =table
  ldr x1, [x1, x0, lsl #3]
  br x1
// Writes x0 to x30, pc and pstate at the fault, ends with 128 + the signal. QEMU counts instructions
// of processes that end by themselves only.
handler:
  mov x19, x0
  add x20, x2, #440
  add x1, x2, #184
  mov x0, #1
  mov x2, #248
  mov x8, #64
  svc #0
  mov x0, #1
  mov x1, x20
  mov x2, #16
  svc #0
  add x0, x19, #128
  mov x8, #94
  svc #0
helper:
  eor x8, x8, x9
  add x9, x9, #1
  ret
finish:
  mov x0, #99
  mov x8, #94
  svc #0
  .balign 8
action: .quad handler, 4, 0, 0  // SA_SIGINFO
  .ltorg
""" % NOWHERE
    table = ["  .data", "  .balign 8", "table:", *(f"  .quad case_{c.number}" for c in cases),
             "  .bss", "  .balign 4096", "  .global buffer", "buffer: .skip 8192", ""]
    return start + "\n".join(line for c in cases for line in c.text) + "\n" + "\n".join(table)


def build(cases, folder):
    folder.mkdir(parents=True, exist_ok=True)
    source, elf = folder / "faults.s", folder / "faults.elf"
    source.write_text(assembly(cases))
    subprocess.run(["aarch64-linux-gnu-gcc", "-nostdlib", "-static", "-o", elf, source], check=True)
    symbols = {}
    for line in subprocess.run(["aarch64-linux-gnu-nm", elf], check=True, capture_output=True,
                               text=True).stdout.splitlines():
        address, _, name = line.split()
        symbols[name] = int(address, 16)
    return elf, symbols


class Frame:
    """What the handler wrote."""

    def __init__(self, written):
        words = [int.from_bytes(written[i:i + 8], "little") for i in range(0, len(written), 8)]
        names = [f"x{i}" for i in range(31)] + ["pc", "nzcv"]
        self.values = dict(zip(names, words))
        if "nzcv" in self.values:
            self.values["nzcv"] &= 0xf0000000

    def difference(self, expected):
        return ", ".join(f"{name} {self.values.get(name, 0):#x} not {value:#x}"
                         for name, value in expected.values.items()
                         if self.values.get(name) != value)


def expected_pc(case, symbols):
    if isinstance(case.pc, int):
        return case.pc
    name, _, offset = case.pc.partition("+")
    return symbols[name] + int(offset or 0)


def check(case, elf, symbols, options, plugin):
    """What differs, as lines."""
    want = harness.run_qemu(plugin, elf, [str(2 * case.number)])
    if want.status not in (99, 128 + case.signal):
        return [f"{case}: QEMU ends with {want.status}, not {128 + case.signal}"]
    frame = Frame(want.stdout)
    if want.status != 99 and frame.values.get("pc") != expected_pc(case, symbols):
        return [f"{case}: QEMU faults at {frame.values.get('pc', 0):#x}"]
    if want.guest_instructions is None:
        return [f"{case}: QEMU does not count"]
    problems = []
    for engine, engine_options in ENGINES.items():
        for index, (mode, mode_options) in enumerate(MODES.items()):
            plain = (case.number + index) % 2
            where = f"{case}, {engine}, {mode}, {'no ' if plain else ''}handler: "
            stats_path = harness.SCRATCH.path()
            status, stdout, errors = harness.execute(
                [str(options.gpusim), "run", *mode_options, *engine_options, "--quiet", "--stats",
                 str(stats_path), str(elf), "--", str(2 * case.number + plain)],
                120)
            if status != want.status:
                problems.append(f"{where}status {status}, not {want.status}: "
                                f"{harness.first_line(errors)}")
                continue
            stats = json.loads(stats_path.read_text())
            lanes = 64 if mode == "lanes" else 1
            # Without a handler the fault ends the core, and gpusim names the instruction that
            # jumped.
            if status != 99 and bool(stats["faults"]) != bool(plain):
                problems.append(f"{where}{len(stats['faults'])} faults")
                continue
            pcs = [int(f["address" if case.jumps else "pc"], 16) for f in stats["faults"]]
            instructions = want.guest_instructions - (HANDLER_INSTRUCTIONS if pcs else 0)
            # The plug-in counts what stands at a misaligned address, which is not even fetched.
            instructions -= case.pc == "_start+2"
            if stats["guest_instructions"] != instructions * lanes:
                problems.append(f"{where}{stats['guest_instructions']} instructions, not "
                                f"{lanes} x {instructions}")
            if pcs and pcs != [expected_pc(case, symbols)] * lanes:
                problems.append(f"{where}{len(pcs)} faults, at {', '.join(map(hex, set(pcs)))}, "
                                f"not {expected_pc(case, symbols):#x}")
            # Lanes may interleave their writes.
            if not pcs and len(stdout) != len(want.stdout) * lanes:
                problems.append(f"{where}{len(stdout)} bytes of output")
            elif not pcs and lanes == 1 and Frame(stdout).values != frame.values:
                problems.append(f"{where}the handler sees {Frame(stdout).difference(frame)}")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpusim", required=True, type=pathlib.Path)
    parser.add_argument("--build", required=True, type=pathlib.Path,
                        help="folder for what is built")
    parser.add_argument("--plugin", required=True, help="folder where the QEMU plug-in is built")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    is_long = os.environ.get("GPUSIM_LONG", "0") != "0"
    parser.add_argument("--count", type=int, default=2000 if is_long else 40)
    options = parser.parse_args()

    seed = int(os.environ.get("GPUSIM_SEED", random.SystemRandom().getrandbits(32)))
    print(f"replay: GPUSIM_SEED={seed}", flush=True)
    cases = [Case(number, seed) for number in range(options.count)]
    elf, symbols = build(cases, options.build)
    plugin = harness.build_plugin(options.plugin)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = pool.map(lambda case: check(case, elf, symbols, options, plugin), cases)
        problems = [line for lines in results for line in lines]
    print("\n".join(problems[:40]))
    print(f"{len(cases)} programs, {len(problems)} differences")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
