"""RISC-V for litmus tests: what its instructions do and order, and how they are written.

Loads and stores are written `ld` and `sd` whatever their size; `lr`, `sc` and AMOs, which have 4 or
8 bytes, without `.w` and `.d`. The rules of preserved program order are those of the unprivileged
manual, chapter 17 ("RVWMO Memory Consistency Model").
"""

import re

import memory_model

CONSTANT = r"^li r\d,(\d+)"
NO_LOADS_NOR_STORES = ("li ", "xor ")
# Tests whose commonest outcomes are forbidden to see that they are reported.
MUTATED = ("SB+pos", "MP+fence.rw.rw+fence.r.r")

# ---- model -------------------------------------------------------------------------------------

COMBINE = {"amoswap": lambda old, new: new, "amoadd": lambda old, new: old + new,
           "amoor": lambda old, new: old | new, "amoand": lambda old, new: old & new,
           "amoxor": lambda old, new: old ^ new, "amomaxu": max, "amominu": min}


def parts(name):
    """(name, acquire, release): `amoadd.aqrl` is ("amoadd", True, True)."""
    base, _, order = name.partition(".")
    return base, order.startswith("aq"), order.endswith("rl")


def step(run, instruction, domain):
    """The ways in which an instruction may go on; loads read any value in `domain`."""
    name, _, rest = instruction.partition(" ")
    ops = memory_model.split_operands(rest) if rest else []
    base, acquire, release = parts(name)
    out = run.copy()
    if name == "li":
        out.set(ops[0], int(ops[1]))
        return [out]
    if name in ("xor", "add"):
        a, b = run.value(ops[1]), run.value(ops[2])
        out.set(ops[0], a ^ b if name == "xor" else a + b,
                run.sources(ops[1]) | run.sources(ops[2]))
        return [out]
    if name == "bnez":
        out.control |= run.sources(ops[0])
        return [out]
    if name == "fence.i":  # orders fetches, of which there are none here
        return [out]
    if name in ("fence", "fence.tso"):
        out.add(kind="F", barrier="tso" if name == "fence.tso" else ",".join(ops))
        return [out]
    if name == "sd":
        loc, addr = run.place(ops[1])
        out.add(kind="W", loc=loc, value=run.value(ops[0]), address=addr, data=run.sources(ops[0]))
        return [out]
    if name == "ld" or base == "lr":
        loc, addr = run.place(ops[1])
        ways = []
        for v in sorted(domain[loc]):
            out = run.copy()
            at = out.add(kind="R", loc=loc, value=v, acquire=acquire, release=release,
                         address=addr)
            out.set(ops[0], v, frozenset([at]))
            if base == "lr":
                out.monitor = (loc, at)
            ways.append(out)
        return ways
    if base == "sc":
        loc, addr = run.place(ops[2])
        out.monitor = None
        out.set(ops[0], 1)
        ways = [out]
        if run.monitor and run.monitor[0] == loc:
            out = run.copy()
            out.monitor = None
            out.add(kind="W", loc=loc, value=run.value(ops[1]), acquire=acquire, release=release,
                    address=addr, data=run.sources(ops[1]), rmw_with=run.monitor[1])
            out.set(ops[0], 0)
            ways.append(out)
        return ways
    if base in COMBINE:
        loc, addr = run.place(ops[2])
        ways = []
        for v in sorted(domain[loc]):
            out = run.copy()
            both = {"loc": loc, "acquire": acquire, "release": release, "address": addr,
                    "data": run.sources(ops[1]), "amo": True}
            at = out.add(kind="R", value=v, **both)
            out.add(kind="W", value=COMBINE[base](v, run.value(ops[1])), rmw_with=at, **both)
            out.set(ops[0], v, frozenset([at]))
            ways.append(out)
        return ways
    raise ValueError(f"unknown instruction: {instruction}")


def operation(events, i):
    """The events of the memory operation that event i belongs to. An AMO is one operation."""
    if not events[i].amo:
        return (i,)
    return (i, i + 1) if events[i].kind == "R" else (i - 1, i)


def is_ordered(fence, x, y):
    """Whether a fence keeps an event before one behind it."""
    if fence == "tso":
        return x.kind == "R" or y.kind == "W"
    before, after = fence.split(",")
    return x.kind.lower() in before and y.kind.lower() in after


def local_order(events, first):
    """Pairs of a thread's events in preserved program order, but for rules 2, 3 and 12, which
    depend on which load reads from which store. `events` as they stand in the thread, numbers from
    `first`."""
    pairs = set()

    def order(i, j):
        for a in operation(events, i):
            for b in operation(events, j):
                if a < b:
                    pairs.add((first + a, first + b))

    for j, e in enumerate(events):
        if e.kind == "F":
            continue
        for i in e.address | e.data:                          # rules 9 and 10
            order(i, j)
        if e.rmw_with >= 0:                                   # rule 8
            order(e.rmw_with, j)
        if e.kind == "W":
            for i in e.control:                               # rule 11
                order(i, j)
            for m in range(j):                                # rule 13
                for i in events[m].address:
                    order(i, j)
        for i in range(j):
            x = events[i]
            if x.kind == "F":
                continue
            if (e.kind == "W" and x.loc == e.loc              # rule 1
                    or x.acquire or e.release                 # rules 5 and 6
                    or (x.acquire or x.release) and (e.acquire or e.release)):  # rule 7
                order(i, j)
    for b, fence in enumerate(events):                        # rule 4
        if fence.kind == "F":
            for i in range(b):
                for j in range(b + 1, len(events)):
                    if "F" not in (events[i].kind, events[j].kind) and is_ordered(
                            fence.barrier, events[i], events[j]):
                        order(i, j)
    return pairs


def order_by_source(events, thread_of, start, read_from):
    pairs = set()
    source_of = {r: w for w, r in read_from}

    def order(i, j):
        for a in operation(events, i):
            pairs.update((a, b) for b in operation(events, j))

    for w, r in read_from:
        if thread_of[w] != thread_of[r] or thread_of[w] < 0:
            continue
        if events[w].rmw_with >= 0:                           # rule 3
            order(w, r)
        for i in events[w].address | events[w].data:          # rule 12
            order(start[thread_of[w]] + i, r)
    for a in source_of:                                       # rule 2
        for b in source_of:
            if (thread_of[a] == thread_of[b] and a < b and events[a].loc == events[b].loc
                    and source_of[a] != source_of[b]
                    and not any(e.kind == "W" and e.loc == events[a].loc
                                for e in events[operation(events, a)[-1] + 1:b])):
                order(a, b)
    return pairs


# ---- code --------------------------------------------------------------------------------------

NAMES = ["t0", "t1", "t2", "t3", "t4", "t5", "t6", "a7"]  # r0 ...
LOADS = {1: "lbu", 2: "lhu", 4: "lwu", 8: "ld"}
STORES = {1: "sb", 2: "sh", 4: "sw", 8: "sd"}
# Between instructions: 0 to 3 turns of a loop, by the random bits in a4. Its branches also end
# blocks, after which other cores may run.
DELAY = """    andi ra, a4, 3
    srli a4, a4, 2
7:  beqz ra, 8f
    addi ra, ra, -1
    j 7b
8:"""
HEAD = "    .text\n"


def results_of(instruction):
    """Registers that an instruction reads from memory into, and what they hold."""
    name, _, rest = instruction.partition(" ")
    base = parts(name)[0]
    if name == "ld" or base in ("lr", *COMBINE):
        return [(memory_model.split_operands(rest)[0], "value")]
    if base == "sc":
        return [(memory_model.split_operands(rest)[0], "status")]
    return []


def may_store(instruction):
    return parts(instruction.split()[0])[0] not in ("ld", "lr")


def sizes_of(text):
    """Of a test that names none."""
    return [4, 8] if re.search(r"\b(lr|sc|amo\w+)[. ]", text) else [1, 2, 4, 8]


def assemble(instruction, size, locations):
    """RISC-V text; `locations` are the thread's own, in the order of a0, a1 ..."""
    name, _, rest = instruction.partition(" ")
    ops = memory_model.split_operands(rest) if rest else []
    base, _, order = name.partition(".")
    lines = []

    def reg(r):
        return r if r == "zero" else NAMES[int(r[1:])]

    def at(text):
        loc, index = memory_model.ADDRESS.fullmatch(text).groups()
        result = f"a{locations.index(loc)}"
        if index:
            lines.append(f"add ra, {result}, {reg(index)}")
            result = "ra"
        return f"({result})"

    if name == "li":
        return f"li {reg(ops[0])}, {int(ops[1]) * int('01' * size, 16):#x}"
    if name in ("xor", "add"):
        return f"{name} " + ", ".join(reg(r) for r in ops)
    if name == "bnez":
        return f"bnez {reg(ops[0])}, 9f\n9:"
    if base == "fence":
        return instruction
    if name in ("ld", "sd"):
        name = (LOADS if name == "ld" else STORES)[size]
    else:
        name = f"{base}.{'w' if size == 4 else 'd'}" + (f".{order}" if order else "")
    place = at(ops[-1])
    return "\n    ".join([*lines, f"{name} " + ", ".join(reg(r) for r in ops[:-1]) + f", {place}"])


def body(lines, results):
    """A function of `lines` that leaves the registers `results` in memory. ra is free in it."""
    ends = [f"    sd {NAMES[int(r[1:])]}, (a5)" for r in results]
    return ["    fmv.d.x ft0, ra", *lines, *"\n    add a5, a5, a6\n".join(ends).splitlines(),
            "    fmv.x.d ra, ft0", "    ret"]
