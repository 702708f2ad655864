"""Memory models for small programs: which final states are allowed.

Enumerates the candidate executions of a litmus test (what each load reads, the order of the stores
to each location) and keeps those that an ISA's axioms allow. What the axioms of Arm (ARM, B2.3) and
of RVWMO (unprivileged manual, chapter 17) have in common is here: order by location within and
between threads, atomicity, and one acyclic order of what a thread orders and what others see. What
a thread orders is the ISA's (a64.py, riscv.py):

  step(run, instruction, domain): the ways on of a Run
  local_order(events, first): pairs that are ordered whatever the others do
  order_by_source(...): pairs that are ordered because of which store a load reads from

All accesses of a test to a location have one size and are aligned.
"""

import itertools
import re
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Event:
    kind: str                    # R, W or F (barrier)
    loc: str = ""
    value: int = 0
    acquire: bool = False        # LDAR and the like, aq
    acquire_pc: bool = False     # LDAPR
    release: bool = False        # STLR and the like, rl
    barrier: str = ""            # of A64: full, ld, st, isb; of RISC-V: "rw,w", "tso"
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

    def value(self, register):
        return self.registers.get(register, 0)

    def sources(self, register):
        """The reads that a register's value depends on."""
        return self.taint.get(register, frozenset())

    def set(self, register, value, sources=frozenset()):
        self.registers[register], self.taint[register] = value, sources

    def place(self, text):
        """(location, the reads that the address depends on) of `[x]` or `[x,r7]`"""
        loc, index = ADDRESS.fullmatch(text).groups()
        assert index is None or self.value(index) == 0
        return loc, self.sources(index) if index else frozenset()

    def add(self, **what):
        """An event; its position."""
        self.events.append(Event(control=self.control, **what))
        return len(self.events) - 1


# What a location's parts are called, and where they are.
OFFSETS = {"hi": 8, "hi4": 4, "byte7": 7, "byte1": 1}
ADDRESS = re.compile(r"\[(\w+)(?:,(r\d+))?\]")


def split_operands(text):
    return [x.strip() for x in re.split(r",(?![^\[]*\])", text)]


def thread_runs(isa, program, domain):
    runs = [Run()]
    for instruction in program:
        runs = [after for run in runs for after in isa.step(run, instruction, domain)]
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


def allowed_states(isa, threads, initial):
    """Final states: a set of (registers of each thread as sorted items, final values as sorted
    items)."""
    locations = sorted({m[0] for program in threads for i in program
                        for m in ADDRESS.findall(i)} | set(initial))
    domain = {loc: {initial.get(loc, 0)} for loc in locations}
    # Which values can be anywhere: a chain from store to load to store passes each store once.
    for _ in range(1 + sum(map(len, threads))):
        known = {loc: set(values) for loc, values in domain.items()}
        for program in threads:
            for run in thread_runs(isa, program, known):
                for e in run.events:
                    if e.kind == "W":
                        domain[e.loc].add(e.value)
        if domain == known:
            break
    states = set()
    for runs in itertools.product(*(thread_runs(isa, p, domain) for p in threads)):
        states |= states_of_runs(isa, runs, locations, initial)
    return states


def states_of_runs(isa, runs, locations, initial):
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
        fixed |= isa.local_order(run.events, start[t])
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
            if is_allowed(isa, events, thread_of, position, start, fixed, same_place, coherence,
                          read_from, from_read, rank):
                states.add((registers, final))
                break
    return states


def is_allowed(isa, events, thread_of, position, start, fixed, same_place, coherence, read_from,
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
    for i, j in isa.order_by_source(events, thread_of, start, read_from):
        ordered[i].add(j)
    return is_acyclic(ordered)
