"""Turns a list of tests into a guest program: a table for litmus.c and the threads' code."""

import itertools
import re

import memory_model

SIZES = [1, 2, 4, 8, 16]
TORN = 15


class Test:
    def __init__(self, isa, name):
        self.isa, self.name, self.threads, self.initial, self.torn = isa, name, [], {}, set()
        self.sizes, self.verdict, self.states = None, None, []
        self.locations = []

    def finish(self):
        text = " ".join(i for p in self.threads for i in p)
        self.locations = sorted(set(re.findall(r"\[([xyzw])[\].,]", text)))
        self.sizes = self.sizes or self.isa.sizes_of(text)
        self.observed = self._observed()
        assert self.verdict, f"{self.name}: no verdict"
        assert len(self.observed) <= 16
        if self.verdict in ("only", "never"):
            self.allowed = self._allowed_by_hand()
        else:
            self.allowed = self._allowed_by_model()

    def _observed(self):
        """(key as in a STATE, what it is): results of loads, status of exclusives, final values."""
        found = []
        for t, program in enumerate(self.threads):
            results = {}
            for instruction in program:
                for register, kind in self.isa.results_of(instruction):
                    results[register] = kind
            found += [(f"{t}:{r}", kind) for r, kind in results.items()]
        stored = set()
        for program in self.threads:
            for instruction in program:
                if self.isa.may_store(instruction):
                    stored |= set(re.findall(r"\[([xyzw])[\].,]", instruction))
        if self.verdict in ("only", "never"):
            stored = set(self.locations)
        for loc in sorted(stored):
            found.append((loc, "value"))
            if 16 in self.sizes:
                found.append((loc + ".hi", "value"))
        return found

    def _allowed_by_model(self):
        states = memory_model.allowed_states(self.isa, self.threads, self.initial)
        outcomes = set()
        for registers, final in states:
            values = dict(final)
            for t, r in enumerate(registers):
                values |= {f"{t}:{name}": v for name, v in r}
            outcomes.add(tuple(values[key] for key, _ in self.observed))
        asked = any(self.matches(o, state) for o in outcomes for state in self.states)
        if asked != (self.verdict == "allow"):
            raise ValueError(f"{self.name}: the model does not {self.verdict} this state")
        return outcomes

    def _allowed_by_hand(self):
        constants = {0} | {int(v) for p in self.threads for i in p
                           for v in re.findall(self.isa.CONSTANT, i)}
        constants |= {int(v) for state in self.states for v in state.values() if v != TORN}
        domains = [({0, 1} if kind == "status" else constants) | ({TORN} if key in self.torn
                                                                  else set())
                   for key, kind in self.observed]
        outcomes = set(itertools.product(*domains))
        listed = {o for o in outcomes if any(self.matches(o, state) for state in self.states)}
        for state in self.states:
            assert set(state) <= {key for key, _ in self.observed}, f"{self.name}: {state}"
        return listed if self.verdict == "only" else outcomes - listed

    def matches(self, outcome, state):
        values = dict(zip((key for key, _ in self.observed), outcome))
        return all(values[key] == v for key, v in state.items())

    def key_of(self, outcome):
        return sum(v << (4 * i) for i, v in enumerate(outcome))

    def text_of(self, key):
        values = [(name, key >> (4 * i) & 15) for i, (name, _) in enumerate(self.observed)]
        return " ".join(f"{name}={'torn' if v == TORN else v}" for name, v in values)


def read_state(text):
    pairs = (x.split("=") for x in text.split())
    return {key: TORN if v == "torn" else int(v) for key, v in pairs}


def read_tests(isa, path):
    tests = []
    for line in path.read_text().splitlines():
        line = line.split("#")[0] if line.startswith("#") else line
        if not line.strip():
            continue
        if not line.startswith(" "):
            tests.append(Test(isa, line.strip()))
            continue
        word, _, rest = line.strip().partition(" ")
        test = tests[-1]
        if word == "init":
            test.initial = read_state(rest)
        elif word == "size":
            test.sizes = [int(rest)]
        elif word == "torn":
            test.torn = set(rest.split())
        elif word in ("forbid", "allow", "only", "never"):
            test.verdict = word
            test.states = [read_state(x) for x in rest.split("|")]
        elif word == f"{len(test.threads)}:":
            test.threads.append([i.strip() for i in rest.split(";")])
        else:
            raise ValueError(f"{test.name}: {line}")
    for test in tests:
        test.finish()
    return tests


# ---- code --------------------------------------------------------------------------------------

def own_locations(program):
    """Of one thread, in the order of their first use. Threads that differ only in names share code,
    and so can run in lockstep."""
    order = []
    for loc in re.findall(r"\[([xyzw])[\].,]", " ".join(program)):
        if loc not in order:
            order.append(loc)
    return order


def body(isa, program, results, size, split):
    locations = own_locations(program)
    lines = []
    for i, instruction in enumerate(program):
        if split and i > 0 and not instruction.startswith(isa.NO_LOADS_NOR_STORES):
            lines.append(isa.DELAY)
        lines.append("    " + isa.assemble(instruction, size, locations))
    return "\n".join(isa.body(lines, results))


def write_program(isa, tests, folder):
    bodies = {}

    def label_of(text):
        return bodies.setdefault(text, f"body_{len(bodies)}")

    table = []
    for n, test in enumerate(tests):
        threads, planes = [], {}
        for t, program in enumerate(test.threads):
            results = [key.split(":")[1] for key, _ in test.observed if key.startswith(f"{t}:")]
            planes |= {f"{t}:{r}": i for i, r in enumerate(results)}
            names = []
            for size in SIZES:
                if size in test.sizes:
                    pair = [label_of(body(isa, program, results, size, split))
                            for split in (False, True)]
                    names.append("{" + ", ".join(pair) + "}")
                else:
                    names.append("{0, 0}")
            places = ", ".join(str(test.locations.index(x)) for x in own_locations(program))
            threads.append("{{" + ", ".join(names) + "}, {" + places + "}}")
        observed = []
        for key, kind in test.observed:
            size = {"byte": 0, "word": 2, "status": 0}.get(kind, "kSameSize")
            if ":" in key:
                fields = [int(key.split(":")[0]), planes[key], 0]
            else:
                loc, _, part = key.partition(".")
                fields = [-1, test.locations.index(loc), memory_model.OFFSETS.get(part, 0)]
            observed.append("{" + ", ".join(map(str, [*fields, int(kind == "status"), size])) + "}")
        keys = sorted(test.key_of(o) for o in test.allowed)
        print_keys = ", ".join(f"{k:#x}u" if k < 1 << 32 else f"{k:#x}ull" for k in keys)
        sizes = sum(1 << SIZES.index(s) for s in test.sizes)
        initial = ", ".join(str(test.initial.get(x, 0)) for x in test.locations)
        table.append((f"static const uint64_t allowed_{n}[] = {{{print_keys}}};",
                      f'    {{"{test.name}", {len(test.threads)}, {len(test.locations)}, {sizes}, '
                      f"{{{initial}}}, {{{', '.join(threads)}}}, {len(observed)}, {len(keys)}, "
                      f"{{{', '.join(observed)}}}, allowed_{n}}},"))
    (folder / "bodies.S").write_text(
        isa.HEAD +
        "".join(f"    .global {name}\n    .type {name}, %function\n{name}:\n{text}\n"
                for text, name in bodies.items()))
    (folder / "table.c").write_text("\n".join(
        ['#include "litmus.h"', *(f"body_fn {name};" for name in bodies.values()),
         *(a for a, _ in table), "const test_t litmus_tests[] = {", *(b for _, b in table), "};",
         f"const uint32_t litmus_test_count = {len(tests)};", ""]))
    return len(bodies)
