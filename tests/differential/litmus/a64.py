"""A64 for litmus tests: what its instructions do and order, and how they are written."""

import itertools
import re

import memory_model

LOADS = ("ldr", "ldar", "ldapr", "ldxr", "ldaxr")
PAIR_LOADS = ("ldxp", "ldaxp", "ldp")
CONSTANT = r"^mov r\d,#(\d+)"
NO_LOADS_NOR_STORES = ("mov ", "eor ", "lea ")
# Tests whose commonest outcomes are forbidden to see that they are reported.
MUTATED = ("SB+pos", "MP+dmb.ish+dmb.ishld")

# ---- model -------------------------------------------------------------------------------------

COMBINE = {"swp": lambda old, new: new, "ldadd": lambda old, new: old + new,
           "ldset": lambda old, new: old | new, "ldclr": lambda old, new: old & ~new,
           "ldeor": lambda old, new: old ^ new, "ldumax": max, "ldumin": min}


def atomic_name(name):
    """(operation, acquire, release), or None."""
    for base in [*COMBINE, "cas"]:
        if name.startswith(base) and name[len(base):] in ("", "a", "l", "al"):
            return base, "a" in name[len(base):], "l" in name[len(base):]
    return None


def step(run, instruction, domain):
    """The ways in which an instruction may go on; loads read any value in `domain`."""
    name, _, rest = instruction.partition(" ")
    ops = memory_model.split_operands(rest) if rest else []
    out = run.copy()
    if name == "mov":
        out.set(ops[0], int(ops[1][1:]))
        return [out]
    if name in ("eor", "add", "and"):
        a, b = run.value(ops[1]), run.value(ops[2])
        result = {"eor": a ^ b, "add": a + b, "and": a & b}[name]
        out.set(ops[0], result, run.sources(ops[1]) | run.sources(ops[2]))
        return [out]
    if name == "cbnz":
        out.control |= run.sources(ops[0])
        return [out]
    if name == "isb":
        out.add(kind="F", barrier="isb")
        return [out]
    if name in ("dmb", "dsb"):
        out.add(kind="F", barrier={"ld": "ld", "st": "st"}.get(ops[0][-2:], "full"))
        return [out]
    if name in ("str", "stlr"):
        loc, addr = run.place(ops[1])
        out.add(kind="W", loc=loc, value=run.value(ops[0]), release=name == "stlr", address=addr,
                data=run.sources(ops[0]))
        return [out]
    if name in ("ldr", "ldar", "ldapr", "ldxr", "ldaxr"):
        loc, addr = run.place(ops[1])
        ways = []
        for v in sorted(domain[loc]):
            out = run.copy()
            at = out.add(kind="R", loc=loc, value=v, acquire=name in ("ldar", "ldaxr"),
                         acquire_pc=name == "ldapr", address=addr)
            out.set(ops[0], v, frozenset([at]))
            if "x" in name:
                out.monitor = (loc, at)
            ways.append(out)
        return ways
    if name in ("stxr", "stlxr"):
        loc, addr = run.place(ops[2])
        out.monitor = None
        out.set(ops[0], 1)
        ways = [out]
        if run.monitor and run.monitor[0] == loc:
            out = run.copy()
            out.monitor = None
            out.add(kind="W", loc=loc, value=run.value(ops[1]), release=name == "stlxr",
                  address=addr, data=run.sources(ops[1]), rmw_with=run.monitor[1])
            out.set(ops[0], 0)
            ways.append(out)
        return ways
    if name == "clrex":
        out.monitor = None
        return [out]
    if atomic_name(name):
        base, acquire, release = atomic_name(name)
        loc, addr = run.place(ops[2])
        ways = []
        for v in sorted(domain[loc]):
            out = run.copy()
            at = out.add(kind="R", loc=loc, value=v, acquire=acquire, address=addr)
            if base == "cas":
                stores = v == run.value(ops[0])
                new, data = run.value(ops[1]), run.sources(ops[1])
            else:
                stores, data = True, run.sources(ops[0])
                new = COMBINE[base](v, run.value(ops[0]))
            if stores:
                out.add(kind="W", loc=loc, value=new, release=release, address=addr, data=data,
                      rmw_with=at, amo=True)
            out.set(ops[0] if base == "cas" else ops[1], v, frozenset([at]))
            ways.append(out)
        return ways
    raise ValueError(f"unknown instruction: {instruction}")


def local_order(events, first):
    """Pairs of a thread's events that are ordered whatever the others do, except for what depends
    on which load reads from which store. `events` as they stand in the thread, numbers from
    `first`."""
    pairs = set()
    n = len(events)

    def order(i, j):
        if events[i].kind != "F" and events[j].kind != "F":
            pairs.add((first + i, first + j))

    for j, e in enumerate(events):
        before = range(j)
        for i in e.address | e.data:                          # dependencies
            order(i, j)
        if e.kind == "W":
            for i in e.control:
                order(i, j)
            for m in before:                                  # address, then anything, then a store
                for i in events[m].address:
                    order(i, j)
            for i in before:                                  # to one location
                if events[i].loc == e.loc:
                    order(i, j)
            if e.rmw_with >= 0:
                order(e.rmw_with, j)
            if e.release:
                for i in before:
                    order(i, j)
        for i in before:
            x = events[i]
            if x.acquire or x.acquire_pc:
                order(i, j)
            if x.release and e.acquire:
                order(i, j)
    for b, fence in enumerate(events):
        after = range(b + 1, n)
        if fence.kind == "F":
            for i, j in itertools.product(range(b), after):
                x, y = events[i], events[j]
                if (fence.barrier == "full" or (fence.barrier == "ld" and x.kind == "R")
                        or (fence.barrier == "st" and x.kind == "W" and y.kind == "W")):
                    order(i, j)
            if fence.barrier == "isb":
                sources = set(fence.control)
                for m in range(b):
                    sources |= events[m].address
                for i, j in itertools.product(sources, after):
                    if events[j].kind == "R":
                        order(i, j)
        # The store of an atomic instruction with acquire and release is before all that follows.
        if fence.amo and fence.release and events[fence.rmw_with].acquire:
            for j in after:
                order(b, j)
    return pairs


def order_by_source(events, thread_of, start, read_from):
    """What is forwarded inside a thread."""
    pairs = []
    for w, r in read_from:
        if thread_of[w] != thread_of[r] or thread_of[w] < 0:
            continue
        first = start[thread_of[w]]
        pairs += [(first + i, r) for i in events[w].address | events[w].data]
        if events[w].rmw_with >= 0 and (events[r].acquire or events[r].acquire_pc):
            pairs.append((w, r))
    return pairs


# ---- code --------------------------------------------------------------------------------------

def results_of(instruction):
    """Registers that an instruction reads from memory into, and what they hold."""
    name, _, rest = instruction.partition(" ")
    name, _, width = name.partition(".")
    kind = {"": "value", "b": "byte", "w": "word"}[width]
    ops = memory_model.split_operands(rest)
    if name in LOADS:
        return [(ops[0], kind)]
    if name in PAIR_LOADS:
        return [(ops[0], kind), (ops[1], kind)]
    if name == "fromq":
        return [(ops[0], kind), (ops[1], kind)]
    if name in ("stxr", "stlxr", "stxp", "stlxp"):
        return [(ops[0], "status")]
    if name in ("lsr", "uxtw"):
        return [(ops[0], "word")]
    if name.startswith("casp"):
        return [(ops[0], kind), (ops[1], kind)]
    if atomic_name(name):
        return [(ops[0] if name.startswith("cas") else ops[1], kind)]
    return []


def sizes_of(_text):
    """Of a test that names none."""
    return [1, 2, 4, 8]


def may_store(instruction):
    name = instruction.split()[0].split(".")[0]
    return name not in (*LOADS, *PAIR_LOADS, "ldrq", "lea")


FIRST = 8  # r0 is x8
# Between instructions: 0 to 3 turns of a loop, by the random bits in x4. Its branches also end
# blocks, after which other cores may run.
DELAY = """    and x16, x4, #3
    ror x4, x4, #2
7:  cbz x16, 8f
    sub x16, x16, #1
    b 7b
8:"""


def assemble(instruction, size, locations):
    """A64 text; `locations` are the thread's own, in the order of x0, x1 ..."""
    name, _, rest = instruction.partition(" ")
    name, _, own = name.partition(".")
    bytes_ = {"": min(size, 8), "b": 1, "w": 4}[own]
    suffix = {1: "b", 2: "h"}.get(bytes_, "")
    wide = "x" if bytes_ == 8 else "w"

    def reg(r, width=wide):
        return f"{width}{FIRST + int(r[1:])}"

    def at(text):
        inner = text[1:-1]
        if re.fullmatch(r"r\d", inner):
            return f"[{reg(inner, 'x')}]"
        base, _, index = inner.partition(",")
        loc, _, part = base.partition(".")
        result = f"x{locations.index(loc)}"
        if part:
            return f"[{result}, #{memory_model.OFFSETS[part]}]"
        return f"[{result}, {reg(index, 'x')}]" if index else f"[{result}]"

    ops = memory_model.split_operands(rest) if rest else []
    if name == "mov":
        value = int(ops[1][1:])
        pattern = value * int("01" * bytes_, 16)
        return f"mov {reg(ops[0])}, #{pattern:#x}"
    if name in ("eor", "add", "and"):
        return f"{name} " + ", ".join(reg(r) for r in ops)
    if name == "cbnz":
        return f"cbnz {reg(ops[0])}, 9f\n9:"
    if name in ("dmb", "dsb", "isb", "clrex"):
        return instruction
    if name == "lea":
        loc, part = ops[1][1:-1].split(".")
        return f"add {reg(ops[0], 'x')}, x{locations.index(loc)}, #{memory_model.OFFSETS[part]}"
    if name == "lsr":
        return f"lsr {reg(ops[0], 'x')}, {reg(ops[1], 'x')}, {ops[2]}"
    if name == "uxtw":
        return f"mov {reg(ops[0], 'w')}, {reg(ops[1], 'w')}"
    if name == "dup":
        return f"dup v{ops[0][1:]}.2d, {reg(ops[1], 'x')}"
    if name in ("strq", "ldrq"):
        return f"{name[:3]} {ops[0]}, {at(ops[1])}"
    if name == "fromq":
        q = ops[2][1:]
        return f"fmov {reg(ops[0], 'x')}, d{q}\n    mov {reg(ops[1], 'x')}, v{q}.d[1]"
    if name in ("stxr", "stlxr", "stxp", "stlxp"):
        pair = "" if name.endswith("p") else suffix
        values = ", ".join(reg(r) for r in ops[1:-1])
        return f"{name}{pair} {reg(ops[0], 'w')}, {values}, {at(ops[-1])}"
    if name in (*PAIR_LOADS, "stp") or name.startswith("casp"):
        suffix = ""
    return f"{name}{suffix} " + ", ".join(reg(r) for r in ops[:-1]) + f", {at(ops[-1])}"


def body(lines, results):
    """A function of `lines` that leaves the registers `results` in memory."""
    ends = [f"    str x{FIRST + int(r[1:])}, [x5]" for r in results]
    return [*lines, *"\n    add x5, x5, x6\n".join(ends).splitlines(), "    ret"]


HEAD = "    .arch armv8.3-a\n    .text\n"
