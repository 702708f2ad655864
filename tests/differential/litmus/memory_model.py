"""The A64 memory model for small programs: which final states are allowed.

Enumerates the candidate executions of a litmus test (what each load reads, the order of the stores
to each location) and keeps those that the axioms of the Arm ARM, section B2.3, allow: internal
visibility, external visibility (acyclic ordered-before) and atomicity. All accesses of a test to a
location have one size and are aligned.
"""

import itertools
import re
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Event:
    kind: str                    # R, W or F (barrier)
    loc: str = ""
    value: int = 0
    acquire: bool = False        # LDAR and the like
    acquire_pc: bool = False     # LDAPR
    release: bool = False
    barrier: str = ""            # full, ld, st, isb
    address: frozenset = frozenset()  # reads that the address depends on (positions in the thread)
    data: frozenset = frozenset()     # reads that the stored value depends on
    control: frozenset = frozenset()  # reads that an earlier branch depends on
    rmw_with: int = -1           # write: the position of the read of the same atomic operation
    amo: bool = False            # by one instruction


@dataclass
class Run:
    """One way of a thread through its program."""
    events: list = field(default_factory=list)
    registers: dict = field(default_factory=dict)
    taint: dict = field(default_factory=dict)
    control: frozenset = frozenset()
    monitor: tuple = None        # location and position of the exclusive load

    def copy(self):
        return Run(list(self.events), dict(self.registers), dict(self.taint), self.control,
                   self.monitor)


ADDRESS = re.compile(r"\[(\w+)(?:,(r\d+))?\]")
COMBINE = {"swp": lambda old, new: new, "ldadd": lambda old, new: old + new,
           "ldset": lambda old, new: old | new, "ldclr": lambda old, new: old & ~new,
           "ldeor": lambda old, new: old ^ new, "ldumax": max, "ldumin": min}


def split_operands(text):
    return [x.strip() for x in re.split(r",(?![^\[]*\])", text)]


def atomic_name(name):
    """(operation, acquire, release), or None."""
    for base in [*COMBINE, "cas"]:
        if name.startswith(base) and name[len(base):] in ("", "a", "l", "al"):
            return base, "a" in name[len(base):], "l" in name[len(base):]
    return None


def step(run, instruction, domain):
    """The ways in which an instruction may go on; loads read any value in `domain`."""
    name, _, rest = instruction.partition(" ")
    ops = split_operands(rest) if rest else []
    value = lambda r: run.registers.get(r, 0)                 # noqa: E731
    taint = lambda r: run.taint.get(r, frozenset())           # noqa: E731

    def place(text):
        loc, index = ADDRESS.fullmatch(text).groups()
        assert index is None or value(index) == 0
        return loc, taint(index) if index else frozenset()

    def event(next_run, **what):
        next_run.events.append(Event(control=next_run.control, **what))
        return len(next_run.events) - 1

    def set_register(next_run, r, v, t):
        next_run.registers[r], next_run.taint[r] = v, t

    out = run.copy()
    if name == "mov":
        set_register(out, ops[0], int(ops[1][1:]), frozenset())
        return [out]
    if name in ("eor", "add", "and"):
        a, b = value(ops[1]), value(ops[2])
        result = {"eor": a ^ b, "add": a + b, "and": a & b}[name]
        set_register(out, ops[0], result, taint(ops[1]) | taint(ops[2]))
        return [out]
    if name == "cbnz":
        out.control |= taint(ops[0])
        return [out]
    if name == "isb":
        event(out, kind="F", barrier="isb")
        return [out]
    if name in ("dmb", "dsb"):
        event(out, kind="F", barrier={"ld": "ld", "st": "st"}.get(ops[0][-2:], "full"))
        return [out]
    if name in ("str", "stlr"):
        loc, addr = place(ops[1])
        event(out, kind="W", loc=loc, value=value(ops[0]), release=name == "stlr", address=addr,
              data=taint(ops[0]))
        return [out]
    if name in ("ldr", "ldar", "ldapr", "ldxr", "ldaxr"):
        loc, addr = place(ops[1])
        ways = []
        for v in sorted(domain[loc]):
            out = run.copy()
            at = event(out, kind="R", loc=loc, value=v, acquire=name in ("ldar", "ldaxr"),
                       acquire_pc=name == "ldapr", address=addr)
            set_register(out, ops[0], v, frozenset([at]))
            if "x" in name:
                out.monitor = (loc, at)
            ways.append(out)
        return ways
    if name in ("stxr", "stlxr"):
        loc, addr = place(ops[2])
        out.monitor = None
        set_register(out, ops[0], 1, frozenset())
        ways = [out]
        if run.monitor and run.monitor[0] == loc:
            out = run.copy()
            out.monitor = None
            event(out, kind="W", loc=loc, value=value(ops[1]), release=name == "stlxr",
                  address=addr, data=taint(ops[1]), rmw_with=run.monitor[1])
            set_register(out, ops[0], 0, frozenset())
            ways.append(out)
        return ways
    if name == "clrex":
        out.monitor = None
        return [out]
    if atomic_name(name):
        base, acquire, release = atomic_name(name)
        loc, addr = place(ops[2])
        ways = []
        for v in sorted(domain[loc]):
            out = run.copy()
            at = event(out, kind="R", loc=loc, value=v, acquire=acquire, address=addr)
            if base == "cas":
                stores = v == value(ops[0])
                new, data = value(ops[1]), taint(ops[1])
            else:
                stores, data = True, taint(ops[0])
                new = COMBINE[base](v, value(ops[0]))
            if stores:
                event(out, kind="W", loc=loc, value=new, release=release, address=addr, data=data,
                      rmw_with=at, amo=True)
            set_register(out, ops[0] if base == "cas" else ops[1], v, frozenset([at]))
            ways.append(out)
        return ways
    raise ValueError(f"unknown instruction: {instruction}")


def thread_runs(program, domain):
    runs = [Run()]
    for instruction in program:
        runs = [after for run in runs for after in step(run, instruction, domain)]
    return runs


def is_acyclic(successors):
    state = [0] * len(successors)

    def visit(n):
        state[n] = 1
        for m in successors[n]:
            if state[m] == 1 or (state[m] == 0 and not visit(m)):
                return False
        state[n] = 2
        return True

    return all(state[n] or visit(n) for n in range(len(successors)))


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


def allowed_states(threads, initial):
    """Final states: a set of (registers of each thread as sorted items, final values as sorted
    items)."""
    locations = sorted({m[0] for program in threads for i in program
                        for m in ADDRESS.findall(i)} | set(initial))
    domain = {loc: {initial.get(loc, 0)} for loc in locations}
    # Which values can be anywhere: a chain from store to load to store passes each store once.
    for _ in range(1 + sum(map(len, threads))):
        known = {loc: set(values) for loc, values in domain.items()}
        for program in threads:
            for run in thread_runs(program, known):
                for e in run.events:
                    if e.kind == "W":
                        domain[e.loc].add(e.value)
        if domain == known:
            break
    states = set()
    for runs in itertools.product(*(thread_runs(p, domain) for p in threads)):
        states |= states_of_runs(runs, locations, initial)
    return states


def states_of_runs(runs, locations, initial):
    events = [replace(Event(kind="W", loc=loc, value=initial.get(loc, 0))) for loc in locations]
    thread_of = [-1] * len(events)
    start = []
    for t, run in enumerate(runs):
        start.append(len(events))
        events += run.events
        thread_of += [t] * len(run.events)
    n = len(events)
    position = [i - start[thread_of[i]] if thread_of[i] >= 0 else -1 for i in range(n)]
    reads = [i for i in range(n) if events[i].kind == "R"]
    writes = {loc: [i for i in range(n) if events[i].kind == "W" and events[i].loc == loc]
              for loc in locations}
    sources = [[w for w in writes[events[r].loc] if events[w].value == events[r].value]
               for r in reads]
    if not all(sources):
        return set()
    fixed = set()
    for t, run in enumerate(runs):
        fixed |= local_order(run.events, start[t])
    registers = tuple(tuple(sorted(run.registers.items())) for run in runs)
    same_place = [(i, j) for i in range(n) for j in range(n)
                  if thread_of[i] == thread_of[j] >= 0 and i < j and events[i].loc == events[j].loc
                  and events[i].kind != "F" and events[j].kind != "F"]
    # The stores to each location in every order, its initial value first.
    orders = [[(w[0], *rest) for rest in itertools.permutations(w[1:])] for w in writes.values()]
    states = set()
    for order in itertools.product(*orders):
        final = tuple((events[o[-1]].loc, events[o[-1]].value) for o in order)
        if (registers, final) in states:
            continue
        rank = {w: i for o in order for i, w in enumerate(o)}
        coherence = [(a, b) for o in order for a, b in itertools.combinations(o, 2)]
        for choice in itertools.product(*sources):
            read_from = list(zip(choice, reads))
            from_read = [(r, w) for s, r in read_from for w in writes[events[r].loc]
                         if rank[w] > rank[s] and w != r]
            if is_allowed(events, thread_of, position, start, fixed, same_place, coherence,
                          read_from, from_read, rank):
                states.add((registers, final))
                break
    return states


def is_allowed(events, thread_of, position, start, fixed, same_place, coherence, read_from,
               from_read, rank):
    n = len(events)
    internal = [set() for _ in range(n)]
    for i, j in itertools.chain(same_place, coherence, read_from, from_read):
        internal[i].add(j)
    if not is_acyclic(internal):
        return False
    source_of = {r: s for s, r in read_from}
    for w, e in enumerate(events):                            # atomicity
        if e.rmw_with < 0:
            continue
        r = start[thread_of[w]] + e.rmw_with
        for between, b in enumerate(events):
            if (b.kind == "W" and b.loc == e.loc and thread_of[between] != thread_of[w]
                    and rank[source_of[r]] < rank[between] < rank[w]):
                return False
    ordered = [set() for _ in range(n)]
    for i, j in fixed:
        ordered[i].add(j)
    for i, j in itertools.chain(coherence, read_from, from_read):
        if thread_of[i] != thread_of[j]:
            ordered[i].add(j)
    for w, r in read_from:                                    # forwarded inside a thread
        if thread_of[w] != thread_of[r] or thread_of[w] < 0:
            continue
        first = start[thread_of[w]]
        for i in events[w].address | events[w].data:
            ordered[first + i].add(r)
        if events[w].rmw_with >= 0 and (events[r].acquire or events[r].acquire_pc):
            ordered[w].add(r)
    return is_acyclic(ordered)
