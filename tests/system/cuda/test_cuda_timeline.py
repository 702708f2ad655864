#!/usr/bin/env python3
"""gpusim cuda --timeline: what is there, in which order, and how programs may end.

usage: test_cuda_timeline.py GPUSIM FOLDER BACKEND     Exit status 77: there is no nvcc.
"""
import bisect
import collections
import json
import sys

from cuda_programs import check, failures, from_command_line

ADD, SCALE = "add(int*, int, int)", "scale(int*, int, int)"
ROUNDS, POLLS = 4, 20
FIRST = ["copy HtoD", SCALE, "event 1"] * ROUNDS + [ADD, SCALE] * 2
SECOND = [ADD, "event 2", "copy DtoH"] * ROUNDS + ["set", "host function", "event 2"]
DEFAULT = ["copy DtoD", ADD]
SUBMITTED_BY = {"kernel": {"cudaLaunchKernel", "cudaGraphLaunch"},
                "copy": {"cudaMemcpyAsync", "cudaMemcpy"}, "set": {"cudaMemsetAsync"},
                "host function": {"cudaLaunchHostFunc"}, "event": {"cudaEventRecord"}}


def nanoseconds(event):
    begin = round(event["ts"] * 1000)
    return begin, begin + round(event.get("dur", 0) * 1000)


class Timeline:
    """A file, checked for what every one must be."""

    def __init__(self, name, path, starters):
        whole = json.loads(path.read_text())
        self.name, self.about, events = name, whole["otherData"], whole["traceEvents"]
        self.processes, self.track_names = {}, {}
        self.tracks = collections.defaultdict(list)
        arrows = collections.defaultdict(list)
        for e in events:
            place = (e["pid"], e["tid"])
            if e["ph"] == "X":
                self.tracks[place].append(e)
            elif e["ph"] in "sf":
                arrows[e["id"]].append(e)
            elif e["name"] == "process_name":
                self.processes[e["pid"]] = e["args"]["name"]
            elif e["name"] == "thread_name":
                self.track_names[place] = e["args"]["name"]
        check(set(self.tracks) <= set(self.track_names), f"{name}: tracks without a name")
        for place, slices in self.tracks.items():
            times = [nanoseconds(e) for e in slices]
            check(times == sorted(times), f"{name}: {place}: not in order")
            check(all(a[1] <= b[0] for a, b in zip(times, times[1:])),
                  f"{name}: {place}: slices overlap: {times}")
        self.check_arrows(arrows, starters)

    def check_arrows(self, arrows, starters):
        reached = collections.Counter()
        for pair in arrows.values():
            check([e["ph"] for e in pair] == ["s", "f"], f"{self.name}: arrow {pair}")
            begin, end = pair
            call, work = self.last_before(begin), self.last_before(end)
            check(nanoseconds(begin)[0] <= nanoseconds(call)[1] and work["ts"] == end["ts"] and
                  begin["ts"] <= end["ts"], f"{self.name}: {pair} is between {call} and {work}")
            check("calls" in self.processes[begin["pid"]] and
                  "streams" in self.processes[end["pid"]], f"{self.name}: arrow {pair}")
            check(call["name"] in starters.get(work["cat"], ()),
                  f"{self.name}: {call['name']} started {work['cat']}")
            reached[end["pid"], end["tid"], end["ts"]] += 1
        for place, slices in self.tracks.items():
            if "streams" in self.processes[place[0]]:
                check(all(reached[(*place, s["ts"])] == 1 for s in slices),
                      f"{self.name}: {place}: not each slice has one arrow")

    def last_before(self, event):
        """The slice of its track that begins last before it, or with it."""
        slices = self.tracks[event["pid"], event["tid"]]
        return slices[bisect.bisect_right(slices, event["ts"], key=lambda s: s["ts"]) - 1]

    def streams(self):
        """By name: of one process."""
        return {self.track_names[place]: slices for place, slices in self.tracks.items()
                if "streams" in self.processes[place[0]]}

    def calls(self):
        return self.slices("calls")

    def work(self, category):
        return [s for s in self.slices("streams") if s["cat"] == category]

    def slices(self, kind):
        return sorted((s for place, slices in self.tracks.items()
                       if kind in self.processes[place[0]] for s in slices), key=nanoseconds)


class Recorded:
    def __init__(self, p):
        self.p, self.path, self.stats = p, p.folder / "timeline.json", p.folder / "stats.json"
        self.program = p.link("timeline", [p.object_of("timeline")])

    def run(self, how, *command, options=(), starters=None):
        self.path.unlink(missing_ok=True)
        done = self.p.run(*(command or [self.program, how]), options=[
            "--timeline", str(self.path), "--stats", str(self.stats), *options])
        timeline = Timeline(how, self.path, SUBMITTED_BY if starters is None else starters)
        return done, timeline, json.loads(self.stats.read_text())


def check_streams(t, default):
    found = {name: [s["name"] for s in slices] for name, slices in t.streams().items()}
    check(found == {"stream 1": FIRST, "stream 2": SECOND, "default stream": default},
          f"{t.name}: {found}")
    sizes = [(s["name"], s["args"]["bytes"]) for s in t.work("copy") + t.work("set")]
    check(sorted(set(sizes)) == [("copy DtoD", 4000), ("copy DtoH", 4000), ("copy HtoD", 4000),
                                 ("set", 2000)], f"{t.name}: {sizes}")


def check_sums(t, stats):
    counted = collections.Counter()
    threads = collections.Counter()
    for s in t.work("kernel"):
        counted[s["args"]["symbol"]] += s["args"]["thread_instructions"]
        threads[s["args"]["symbol"]] += s["args"]["threads"]
    check({k["symbol"]: (k["instructions"], k["threads"]) for k in stats["kernels"]} ==
          {k: (counted[k], threads[k]) for k in counted}, f"{t.name}: {counted}, --stats differs")
    check(sum(counted.values()) == stats["instructions"] > 0, f"{t.name}: sum of instructions")
    check(sorted(s["args"]["launch"] for s in t.work("kernel")) ==
          list(range(1, stats["launches"] + 1)), f"{t.name}: launches")


def test_whole(r):
    for options in ([], ["--check"]):
        done, t, stats = r.run("ends", options=options)
        check(done.returncode == 0 and "all fine" in done.stdout, f"ends: {done}")
        check(t.about["complete"] and str(r.program) == t.about["program"], f"ends: {t.about}")
        check_streams(t, DEFAULT)
        check_sums(t, stats)
        check(len(t.processes) == 2, f"ends: {t.processes}")
    kernel = t.streams()["stream 2"][0]["args"]
    check((kernel["grid"], kernel["block"], kernel["shared_bytes"], kernel["threads"]) ==
          ([1, 1, 1], [16, 1, 1], 64, 16), f"arguments: {kernel}")
    calls = collections.Counter(s["name"] for s in t.calls())
    check((calls["cudaStreamSynchronize"], calls["cudaDeviceSynchronize"], calls["cudaMalloc"],
           calls["cudaStreamWaitEvent"], calls["cudaGraphLaunch"]) ==
          (ROUNDS, 1, 2, 2 * ROUNDS, 2), f"calls: {calls}")
    check(len({s["tid"] for s in t.calls()}) == 2, "a track for each of two threads")
    # The thread that polls makes one slice of what was not ready.
    polls = [s["args"] for s in t.calls() if s["name"] == "cudaEventQuery"]
    check(len(polls) == 2 and polls[0]["result"] == "cudaErrorNotReady" and
          polls[0]["calls"] >= POLLS and "result" not in polls[1], f"polls: {polls}")
    wrong = [s["args"].get("result") for s in t.calls() if s["name"] == "cudaSetDevice"]
    check(wrong == ["cudaErrorInvalidDevice"], f"results: {wrong}")
    waits = [s for s in t.calls() if s["cat"] == "synchronisation"]
    check(len(waits) == ROUNDS + 1 and waits[0]["args"]["stream"] == 2, f"waits: {waits}")
    host, poll = t.work("host function")[0], next(s for s in t.calls() if "Query" in s["name"])
    check(nanoseconds(host)[1] > nanoseconds(poll)[0], f"polls are beside {host}: {poll}")


def test_much(r):
    """More than the first part of the file."""
    done, t, _ = r.run("records_much")
    check(done.returncode == 0 and "all fine" in done.stdout, f"records_much: {done}")
    found = {name: len(slices) for name, slices in t.streams().items()}
    check(found == {"stream 1": 5000, "stream 2": 5000}, f"records_much: {found}")


def test_ends_of_programs(r):
    done, t, _ = r.run("exits_at_once")
    check(done.returncode == 5, f"exits_at_once: {done}")
    check_streams(t, DEFAULT)
    check(not any("unfinished" in s["args"] for s in t.calls()), "exits_at_once: unfinished")

    done, t, _ = r.run("is_killed")
    check(done.returncode == 137, f"is_killed: {done}")
    check_streams(t, [*DEFAULT, ADD, "host function"])
    open_ones = [s["name"] for s in t.calls() + t.work("host function")
                 if s["args"].get("unfinished")]
    # The process may be dead before the thread comes to its wait.
    check(open_ones[-1:] == ["host function"] and len(open_ones) <= 2, f"is_killed: {open_ones}")

    done, t, stats = r.run("faults")
    check(done.returncode == 0 and "all fine" in done.stdout, f"faults: {done}")
    check_streams(t, [*DEFAULT, ADD])
    check_sums(t, stats)
    fault = t.streams()["default stream"][-1]["args"].get("fault", "")
    check("add" in fault and fault in done.stderr, f"faults: {fault}")
    waits = [s["args"].get("result") for s in t.calls() if s["name"] == "cudaDeviceSynchronize"]
    check(waits == [None, "cudaErrorIllegalAddress"], f"faults: {waits}")


def test_processes(r):
    done, t, stats = r.run("two", "sh", "-c", '"$0" ends && "$0" exits_at_once', r.program)
    check(done.returncode == 5 and len(t.processes) == 4, f"two: {t.processes}, {done}")
    check(len(t.tracks) == 2 * (2 + 3), f"two: {t.track_names}")
    # The second leaves no counts.
    check(len(t.work("kernel")) == 2 * stats["launches"], f"two: {len(t.work('kernel'))}")
    done, t, _ = r.run("none", "sh", "-c", "exit 3")
    check(done.returncode == 3 and not t.tracks and not t.processes, f"none: {done}")


def test_driver(r):
    driver = r.p.driver()
    if driver is None:
        return
    starters = {"kernel": {"cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchCooperativeKernel"},
                "copy": {"cuMemcpyHtoD", "cuMemcpyDtoH", "cuMemcpyDtoHAsync", "cuMemcpyHtoDAsync",
                         "cuMemcpyDtoD", "cuMemcpyDtoDAsync", "cuMemcpy", "cuMemcpyAsync"},
                "set": {f"cuMemsetD{n}{a}" for n in (8, 16, 32) for a in ("", "Async")},
                "host function": {"cuLaunchHostFunc", "cuStreamAddCallback"},
                "event": {"cuEventRecord"}}
    done, t, stats = r.run("driver", *driver, starters=starters)
    check("all fine" in done.stdout, f"driver: {done}")
    check_sums(t, stats)
    check(not any(s["name"].startswith("cuda") for s in t.calls()), "driver: names of calls")


def test_refusals(r):
    done = r.p.run(r.program, "ends", options=["--timeline", "/nowhere/t.json"])
    check((done.returncode, done.stdout) == (2, "") and
          "--timeline /nowhere/t.json" in done.stderr, f"no folder: {done}")


def main():
    r = Recorded(from_command_line(__doc__)[0])
    test_whole(r)
    test_much(r)
    test_ends_of_programs(r)
    test_processes(r)
    test_driver(r)
    test_refusals(r)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
