#!/usr/bin/env python3
"""Compares what the table of PTX rows takes with what ptxas takes.

  ptxas_oracle.py VERDICTS_PROGRAM PTXAS [--per-row N] [--seed S]

For each row: combinations of its modifiers, with operands that fit and with operands of other
types. What the table takes, ptxas must take. Where only the operands are refused, ptxas must refuse
them, too.
"""

import argparse
import collections
import os
import random
import re
import subprocess
import sys
import tempfile

HEAD = ".version 9.0\n.target sm_90a\n.address_size 64\n.global .align 16 .b8 var[64];\n" \
       ".shared .align 16 .b8 near[64];\n"
REGISTERS = {"pred": "p", "b16": "h", "u16": "uh", "s16": "sh", "f16": "fh", "b32": "r",
             "u32": "ur", "s32": "sr", "f32": "f", "b64": "rd", "u64": "ud", "s64": "sd",
             "f64": "fd", "b128": "q"}
FRAGMENT = 128  # registers of a type, of which fragments are made
DECLARE = " ".join(f".reg .{t} %{r}<{FRAGMENT if r in ('r', 'f', 'fd') else 9}>;"
                   for t, r in REGISTERS.items())
BITS = {"pred": 1, "f16x2": 32, "bf16x2": 32, "tf32": 32, "e4m3x2": 16, "e5m2x2": 16, "e4m3": 8,
        "e5m2": 8, "b1": 1}

# ptxas wants the modifiers of these as the row has them.
ONE_ORDER = ("tex", "tld4", "txq", "suld", "sust", "sured", "suq", "istypep", "mapa", "getctarank",
             "elect", "fence", "setmaxnreg", "griddepcontrol", "mma", "wmma", "wgmma", "ldmatrix",
             "stmatrix", "movmatrix", "createpolicy")

# Differences that have a reason: what matches (the instruction, as text) is left out.
EXPECTED = [
    (r"^(ld|st)\b.*\.param", "state spaces of parameters depend on where the instruction stands"),
    (r"^(call|bra|brx|cvta|isspacep|prefetch)", "symbols and labels are not generated"),
    (r"^(bar|barrier)\.", "barrier numbers and counts are checked when the kernel is translated"),
    (r"^(cp|mbarrier)\b", "ptxas has one order of their modifiers; addresses are of shared memory"),
    (r"^(and|or|xor|not)\.pred", "ptxas takes any integer for a predicate"),
    (r"^bf[ei]\b.*, -\d", "ptxas takes no negative constants for positions and lengths"),
    (r"^fence\.proxy\.tensormap.*\[%", "ptxas takes any register for this address"),
    (r"^cvt\S*\.(f32|f16x2)\.\S+ %rd", "ptxas takes plain registers of 64 bits for singles"),
    (r"^set\S*\.bf16\.b?f16 %[us]h", "ptxas takes integer registers for truths of bf16"),
    (r"^createpolicy\.cvt|^createpolicy.*(1\.5|\[%[us]?r\d)", "policies are not generated"),
    (r"^setmaxnreg", "numbers of registers are not generated"),
    (r"^cvt\.\S*pack\S* .*%[rsu]d", "ptxas takes registers of 64 bits there"),
    (r"^cp\.\S*tensor", "addresses of tensor maps are not generated"),
    (r"\[%[us]?h\d\]", "ptxas takes registers of 16 bits for addresses of shared memory"),
    (r"^sured\b.*\.[usb]32.*, %[rsuf]d\d;", "ptxas takes registers of 64 bits for 32"),
    (r"^(?!\S*b128).*%q", "registers of 128 bits take nothing narrower here"),
    (r"^atom\S*b128.*, [-\d]", "ptxas 13.0 crashes at constants there"),
    (r"^mov.*-", "negative constants of 128 bits are refused when the kernel is translated"),
    (r"^mad(\.ftz|\.sat)*\.f32", "ptxas takes no mad without a rounding in texts after PTX 3.0"),
    (r"^lop3", "the table of lop3 is checked when the kernel is translated"),
]


def bits(t):
    return BITS.get(t) or int(re.search(r"\d+", t).group())


# Types of matrices' elements, as opcodes name them.
ELEMENTS = ("f16", "bf16", "tf32", "f64", "u8", "s8", "f32", "s32", "e4m3", "e5m2", "u4", "s4",
            "b1")


def fragments_of(base, modifiers):
    """Of a product, or of a load or store of wmma: per operand its type and a lane's registers."""
    types = [m for m in modifiers if m in ELEMENTS]
    shape = next(m for m in modifiers if re.fullmatch(r"m\d+n\d+k\d+", m))
    m, n, k = (int(x) for x in re.findall(r"\d+", shape))
    lanes = 128 if base == "wgmma" else 8 if (m, k) == (8, 4) and "f64" not in types else 32
    of_a = k // 2 if {"sp", "sp::ordered_metadata"} & set(modifiers) else k

    def registers(rows, columns, t):
        if base == "wmma" and t == "f16" and columns == k:
            return t, 8  # each element is there twice
        return t, rows * columns * min(bits(t), 32) // 32 // lanes

    if base == "wmma" and "mma" not in modifiers:
        rows, columns = (m, k) if "a" in modifiers else (n, k) if "b" in modifiers else (m, n)
        if types[0] == "f16" and columns == n and rows == m and not {"a", "b"} & set(modifiers):
            return [(types[0], m * n // 64)]
        return [registers(rows, columns, types[0])]
    if base == "wmma" and len(types) == 2:
        types = [types[0], "f16", "f16", types[1]]
    if base == "wgmma":
        types.append(types[0])
    d, a, b, c = types
    sums = [(t, m * n * min(bits(t), 32) // 32 // lanes) for t in (d, c)]
    return [sums[0], registers(m, of_a, a), registers(n, k, b), sums[1]]


def groups_of(syntax):
    base, *words = syntax.split()
    out = []
    for w in words:
        if w[0] == ".":
            out.append((False, [n[1:] for n in w.split("|")]))
        else:
            out.append((w[0] == "{", w[1:-1].split("|")))
    return base, out, [w[0] == "." for w in words]


class Generator:
    def __init__(self, rng):
        self.rng = rng
        self.has_first = False  # whether the row's first modifier has to be first
        self.is_near = False  # whether addresses are of shared memory

    def register(self, width, kinds):
        """One of this width, whose type's first letter is among kinds."""
        names = [t for t in REGISTERS if bits(t) == width and t[0] in kinds]
        t = self.rng.choice(names)
        return f"%{REGISTERS[t]}{self.rng.randrange(9)}"

    def any_register(self):
        t = self.rng.choice(list(REGISTERS))
        return f"%{REGISTERS[t]}{self.rng.randrange(9)}"

    def literal(self):
        return self.rng.choice(["1", "-3", "0f3F800000", "0d3FF0000000000000", "1.5"])

    def fitting(self, code, types, is_source):
        t = types[1] if code.endswith("1") and len(types) > 1 else types[0] if types else "b32"
        width = bits(t)
        kinds = "p" if t == "pred" else "bf" if t[0] == "f" else "bus" if t[0] in "us" else "busf"
        if code in ("dv", "sv"):
            return "{" + self.register(32, "b") + "}"
        if code in ("dpart", "v1", "vn", "sn"):  # of video instructions
            whole = self.register(32, "bus")
            if code != "dpart" and self.rng.random() < 0.5:
                return "-" + whole if code in ("vn", "sn") else whole
            if code == "sn":
                return whole
            return whole + self.rng.choice([".b0", ".b1", ".b2", ".b3", ".h0", ".h1"])
        if code in ("d32", "s32", "r32"):
            return self.register(32, "b")
        if code in ("dw", "sw"):
            return self.register(2 * width, kinds)
        if code in ("dp", "sp", "dpq"):
            return self.register(1, "p")
        if code in ("dq", "dm"):
            return self.register(32, "b")
        if code in ("i", "n"):
            return "1"
        if code == "m":
            return "[near]" if self.is_near else "[var]"
        if code in ("_", "128"):
            return code
        if code == "de":
            return self.register(32, "b") + "|" + self.register(1, "p")
        if code in ("l0", "t0") and width == 8:
            width = self.rng.choice([16, 32, 64])
            kinds = "bus"
        if code in ("c0", "c1") and width == 8:
            width = self.rng.choice([16, 32])
            kinds = "bus"
        if code[0] in "sc" and is_source and t == "f16":
            kinds = "bf"
        return self.register(width, kinds)

    def row_of(self, count, width, kinds):
        return "{" + ", ".join(self.register(width, kinds) for _ in range(count)) + "}"

    def of_texture(self, code, base, modifiers, types):
        """Results, coordinates, gradients, and elements of surfaces; None: something else."""
        kinds = {t: "bf" if t[0] == "f" else "bus" for t in types}
        if code == "dt":
            return self.row_of(4, 32, kinds[types[0]])
        if code == "tx":
            is_surface = base not in ("tex", "tld4")
            kind = "bus" if is_surface else kinds[types[1]]
            count = 1 if "1d" in modifiers else 2 if {"2d", "a1d"} & set(modifiers) else 4
            parts = [self.register(32, kind) for _ in range(count)]
            if {"a1d", "a2d", "acube"} & set(modifiers):
                parts[0] = self.register(32, "bus")
            return f"[{self.register(64, 'bu')}, {{{', '.join(parts)}}}]"
        if code == "gv":
            count = 4 if "3d" in modifiers else 2 if {"2d", "a2d"} & set(modifiers) else 1
            return self.row_of(count, 32, "bf")
        if code in ("dx", "sx"):
            count = 2 if "v2" in modifiers else 4 if "v4" in modifiers else 1
            return self.row_of(count, max(16, bits(types[0])), "bus")
        if base in ("txq", "suq") and code == "m":
            return f"[{self.register(64, 'b')}]"
        return self.register(64, "bu") if code == "s64" else None

    def fragment(self, element, count):
        """Registers in braces; those of a product's sums are told apart by their types."""
        kind = "f64" if element == "f64" else "f32" if element == "f32" else "b32"
        names = [f"%{REGISTERS[kind]}{k}" for k in self.rng.sample(range(FRAGMENT), count)]
        return "{" + ", ".join(names) + "}"

    def matrix_operands(self, base, modifiers, codes):
        """Values of operands of mma, wmma, wgmma, ldmatrix and stmatrix."""
        if base in ("ldmatrix", "stmatrix"):
            count = 4 if "x4" in modifiers else 2 if "x2" in modifiers else 1
            lists = [self.fragment("b32", count)]
        elif "fence" in modifiers or "commit_group" in modifiers or "wait_group" in modifiers:
            lists = []
        else:
            lists = [self.fragment(*f) for f in fragments_of(base, modifiers)]
        is_sparse = "sp" in modifiers or "sp::ordered_metadata" in modifiers
        values = []
        for n, code in enumerate(codes):
            if code in ("dv", "sv"):
                values.append(lists.pop(0))
            elif code == "wa":
                a = lists.pop(0)
                values.append(a if self.rng.random() < 0.5 else "%rd1")
            elif code == "i":
                values.append("0" if is_sparse and codes[n - 1] == "s32" else "1")
            elif code == "s64":
                values.append(self.register(64, "bu"))
            else:
                values.append(self.fitting(code, ["b32"], code[0] in "st"))
        if base == "wgmma" and codes.count("i") - is_sparse == 4 and values[1][0] == "{":
            values.pop()  # whether a is transposed
        return values

    def instruction(self, base, groups, is_types, operands, mutates):
        modifiers, types = [], []
        for (optional, names), is_type in zip(groups, is_types):
            if optional and self.rng.random() < 0.5:
                continue
            name = self.rng.choice(names)
            modifiers.append(name)
            if is_type:
                types.append(name)
        if "const" in modifiers or "local" in modifiers:
            if base in ("ld", "st", "atom", "red", "prefetch"):
                return None  # no variable is there
        self.is_near = bool({"shared", "shared::cta", "shared::cluster", "async"} & set(modifiers))
        codes = [c for c in operands.split() if c != "?"]
        if base in ("mma", "wmma", "wgmma", "ldmatrix", "stmatrix"):
            values = self.matrix_operands(base, modifiers, codes)
            return ".".join([base, *modifiers]) + " " + ", ".join(values) + ";"
        if "?" in operands and self.rng.random() < 0.5:
            codes = operands.split("?")[0].split()
        values = [self.of_texture(c, base, modifiers, types) or
                  self.fitting(c, types, c[0] in "st") for c in codes]
        count = 2 if "v2" in modifiers else 4 if "v4" in modifiers else 0
        if count:
            if types and bits(types[0]) * count > 128:
                return None
            at = [k for k, c in enumerate(codes) if c in ("l0", "t0")]
            for k in at:
                parts = [self.fitting(codes[k], types, False) for _ in range(count)]
                values[k] = "{" + ", ".join(parts) + "}"
        if mutates and values:
            k = self.rng.randrange(len(values))
            if codes[k] in ("m", "tx"):
                values[k] = f"[{self.any_register()}{values[k][values[k].find(','):-1]}]" \
                    if codes[k] == "tx" else f"[{self.any_register()}]"
            elif not values[k].startswith("{"):
                may_be_literal = codes[k][0] in "st" and codes[k] != "sp"
                values[k] = self.literal() if may_be_literal and self.rng.random() < 0.3 \
                    else self.any_register()
        if len(types) < 2 and base not in ONE_ORDER and "async" not in modifiers:
            first = 1 if self.has_first else 0
            rest = modifiers[first:]
            self.rng.shuffle(rest)
            modifiers = modifiers[:first] + rest
        return ".".join([base, *modifiers]) + " " + ", ".join(values) + ";"


def ptxas_verdicts(ptxas, instructions):
    """Of each, whether it is accepted."""
    refused = set()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "t.ptx")
        while True:
            lines = HEAD.count("\n")
            text = HEAD
            for k, insn in enumerate(instructions):
                body = "" if k in refused else insn
                text += f".visible .entry k{k}() {{ {DECLARE} {body} ret; }}\n"
            with open(path, "w", encoding="ascii") as f:
                f.write(text)
            run = subprocess.run([ptxas, "-arch=sm_90a", "--compile-only", path, "-o",
                                  os.path.join(folder, "t.o")], capture_output=True, text=True,
                                 check=False, timeout=500)
            found = set()
            for m in re.finditer(r"line (\d+); (?:error|fatal)|line '(\d+)' which is conflicting",
                                 run.stderr + run.stdout):
                found.add(int(m.group(1) or m.group(2)) - lines - 1)
            new = found - refused
            refused |= new
            if not new:
                if run.returncode != 0 and not found:
                    said = [x for x in (run.stderr + run.stdout).splitlines() if "warning" not in x]
                    sys.exit("ptxas fails: " + "\n".join(said)[:500])
                return [k not in refused for k in range(len(instructions))]


def our_verdicts(program, instructions):
    text = HEAD
    for k, insn in enumerate(instructions):
        text += f".visible .entry k{k}() {{ {DECLARE} {insn} ret; }}\n"
    run = subprocess.run([program], input=text, capture_output=True, text=True, check=True)
    verdicts = dict(line.split() for line in run.stdout.splitlines())
    return [verdicts[f"k{k}"] for k in range(len(instructions))]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("verdicts")
    parser.add_argument("ptxas")
    parser.add_argument("--per-row", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    generator = Generator(random.Random(options.seed))
    rows = subprocess.run([options.verdicts, "--rows"], capture_output=True, text=True,
                          check=True).stdout.splitlines()
    instructions = []
    for row in rows:
        # Rows that are added change nothing for others.
        generator.rng = random.Random(f"{options.seed} {row}")
        syntax, operands = row.rsplit("|", 1)
        base, groups, is_types = groups_of(syntax)
        for n in range(options.per_row):
            generator.has_first = " [" in syntax
            insn = generator.instruction(base, groups, is_types, operands, n % 2 == 1)
            if insn and not any(re.search(p, insn) for p, _ in EXPECTED):
                instructions.append(insn)
    instructions = list(dict.fromkeys(instructions))
    ours = our_verdicts(options.verdicts, instructions)
    theirs = ptxas_verdicts(options.ptxas, instructions)
    wrong = collections.Counter()
    for insn, mine, accepted in zip(instructions, ours, theirs):
        if (mine == "ok") == accepted or (mine == "unsupported" and accepted):
            continue
        wrong[insn.split()[0].split(".")[0]] += 1
        print(f"gpusim: {mine}, ptxas: {'accepts' if accepted else 'refuses'}: {insn}")
    count = collections.Counter(zip(ours, theirs))
    print(f"{len(instructions)} instructions of {len(rows)} rows: "
          + ", ".join(f"{a} and {'accepted' if b else 'refused'} {n}"
                      for (a, b), n in sorted(count.items())))
    if len(instructions) < 2 * len(rows):
        sys.exit("too few instructions were made")
    sys.exit(f"{sum(wrong.values())} differ" if wrong else 0)


if __name__ == "__main__":
    main()
