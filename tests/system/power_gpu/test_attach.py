#!/usr/bin/env python3
"""gpusim power attach and compare, without a GPU: programs of the driver's and the runtime's
interface run on our stand-in for the driver, and a simulated sensor reads what that says it drew.

usage: test_attach.py GPUSIM STUB_DRIVER_FOLDER PROGRAMS_FOLDER STUB_RUNTIME_OBJECT FOLDER
"""
import json
import os
import shutil
import subprocess
import sys

gpusim, stub, programs, runtime_object, folder = sys.argv[1:6]
sources = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")
failures = []
skipped = []


def check(condition, text):
    if not condition:
        failures.append(text)
        print("FAILED:", text)


def path(name):
    return os.path.join(folder, name)


def run(arguments, **variables):
    environment = dict(os.environ, LD_LIBRARY_PATH=stub,
                       GPUSIM_STUB_KERNELS="heavy=0.03:150,light=0.01:60", **variables)
    return subprocess.run([gpusim, "power"] + arguments, capture_output=True, text=True,
                          env=environment, timeout=120)


def attach(command, *options, **variables):
    """What it printed, its figures, and its timeline's events."""
    for name in ("truth", "run.json", "run.csv", "timeline.json"):
        if os.path.exists(path(name)):
            os.remove(path(name))
    done = run(["attach", "--source", "sim:" + path("sensor.json"), "--truth", path("truth"),
                "--lead",
                "0.1", "--tail", "0.1", "-o", path("run.csv"), "--json", path("run.json"),
                "--timeline",
                path("timeline.json"), *options, "--", *command],
               GPUSIM_STUB_TRUTH=path("truth"), **variables)
    figures, events = None, None
    if os.path.exists(path("run.json")):
        figures = json.load(open(path("run.json")))
    if os.path.exists(path("timeline.json")):
        events = json.load(open(path("timeline.json")))["traceEvents"]
    return done, figures, events


def truth():
    rows = [line.split(None, 3) for line in open(path("truth")) if not line.startswith("#")]
    return [(float(b), float(e), float(w), name.strip()) for b, e, w, name in rows]


def slices(events, category):
    return [e for e in events if e["ph"] == "X" and e["cat"] == category]


def check_times(what, tolerance):
    """Kernels' begins and ends against what the stub says that it did."""
    figures = json.load(open(path("run.json")))
    kernels = [i for i in figures["intervals"] if i["name"].startswith(("heavy", "light"))]
    true = [t for t in truth() if t[3].startswith("_Z5")]
    check(len(kernels) == len(true), f"{what}: {len(kernels)} kernels of {len(true)}")
    # A busy machine wakes a waiting host late: most must be near, all must hold the kernel.
    near = sum(abs(k["begin_s"] - t[0]) < tolerance and abs(k["end_s"] - t[1]) < tolerance
               for k, t in zip(kernels, true))
    check(near * 2 > len(true), f"{what}: {near} of {len(true)} kernels have their true times")


def test_ways_of_finding():
    for how, name in (("linked", "driver_program_linked"), ("dlsym", "driver_program"),
                      ("getproc", "driver_program")):
        for timing in ("synchronous", "events", "callbacks"):
            what = f"{how}, {timing}"
            done, figures, events = attach([os.path.join(programs, name), how, "2", "1000"],
                                           "--timing", timing, "--each")
            check(done.returncode == 0, f"{what}: {done.returncode} {done.stderr}")
            if figures is None:
                check(False, f"{what}: no figures: {done.stdout}")
                continue
            names = {n["name"]: n["count"] for n in figures["names"]}
            check(names.get("heavy(int*, int)") == 2 and names.get("light(int*, int)") == 2,
                  f"{what}: {names}")
            check(len(slices(events, "kernel")) == 4 and len(slices(events, "copy")) == 2,
                  f"{what}: timeline")
            launches = [e for e in slices(events, "driver")
                        if e["name"].startswith("cuLaunchKernel")]
            check(len(launches) == 4, f"{what}: {len(launches)} launches as calls")
            copy = slices(events, "copy")[0]["args"]
            check(copy["bytes"] == 4000, f"{what}: {copy}")
            kernel = slices(events, "kernel")[0]["args"]
            check(kernel["blocks"] == 24 and kernel["threads"] == 128, f"{what}: {kernel}")
            check("note" not in done.stdout, f"{what}: {done.stdout}")
            check_times(what, {"synchronous": 0.025, "events": 0.001, "callbacks": 0.025}[timing])


def test_methods_and_truth():
    # Long kernels, so that a busy machine's delays are small beside them.
    done, figures, events = attach([os.path.join(programs, "driver_program"), "dlsym", "3", "10"],
                                   "--timing", "events", "--profile", path("profile.json"),
                                   GPUSIM_STUB_DRIFT="50")
    check(done.returncode == 0, f"methods: {done.stderr}")
    heavy = next(n for n in figures["names"] if n["name"].startswith("heavy"))
    light = next(n for n in figures["names"] if n["name"].startswith("light"))
    expected = 3 * 0.03 * 150
    check(abs(heavy["truth_J"] - expected) < 0.03 * expected,
          f"truth {heavy['truth_J']}, {expected}")

    def error(row, method):
        return abs(row["energy_J"][method] / row["truth_J"] - 1)

    # The sensor lags: what is read while the kernel runs is late, and the others' power is in it.
    check(error(heavy, "mtsm") > 0.05, f"MTSM is as good as the truth: {heavy}")
    check(error(heavy, "corrected") < error(heavy, "mtsm"), f"correction makes it worse: {heavy}")
    check(error(light, "one_reading") > 0.05, f"one reading is as good as the truth: {light}")
    check("error against what was truly drawn" in done.stdout, done.stdout)
    check(any(e["ph"] == "C" and e["name"] == "true power" for e in events), "no true power")
    compared = run(["compare", path("run.csv"), "--truth", path("truth"), "--profile",
                    path("profile.json"), "--json", path("compare.json"), "--html",
                    path("compare.html")])
    check(compared.returncode == 0, f"compare: {compared.stderr}")
    again = json.load(open(path("compare.json")))
    for a, b in zip(again["names"], figures["names"]):
        check(abs(a["energy_J"]["mtsm"] - b["energy_J"]["mtsm"]) < 1e-3,
              f"compare differs: {a} {b}")
    page = open(path("compare.html")).read()
    check("<svg" in page or "canvas" in page or "chart" in page, "the page has no chart")
    check("MTSM" in page and "http://" not in page.replace("http://www.w3.org", ""), "the page")


def test_processes():
    program = os.path.join(programs, "driver_program")
    done, figures, events = attach([program, "dlsym", "1", "10", "threads"])
    check(done.returncode == 0 and sum(n["count"] for n in figures["names"]
                                       if n["name"].startswith("heavy")) == 4, f"threads: {done}")
    check(len({e["tid"] for e in slices(events, "driver")}) == 5, "threads: tracks")
    done, figures, events = attach([program, "dlsym", "1", "10", "fork"])
    check("2 processes" in done.stdout, f"fork: {done.stdout}")
    done, figures, _ = attach([program, "dlsym", "1", "10", "crash"])
    check(done.returncode == 137, f"crash: {done.returncode}")
    check(figures is not None and len(figures["intervals"]) == 4, "crash: what it did is kept")
    done, figures, _ = attach([program, "dlsym", "1", "10", "status"])
    check(done.returncode == 7, f"the program's status is passed on: {done.returncode}")
    done, figures, _ = attach(["sh", "-c", f"{program} dlsym 1 10; exit 3"])
    check(done.returncode == 3 and figures is not None, f"a shell between: {done}")
    done, figures, _ = attach([program, "dlsym", "1", "10"], GPUSIM_STUB_FAIL="cuLaunchKernel")
    check(done.returncode == 1 and "launch: error 999" in done.stderr, f"failing launch: {done}")
    check(figures is None or all(i["name"].startswith("cuMemcpy") for i in figures["intervals"]),
          "a launch that failed is a kernel")


def test_runtime():
    """Programs that nvcc made, with our stand-in for the runtime, static and shared."""
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not os.access(nvcc, os.X_OK):
        skipped.append("no nvcc: programs of the runtime are left out")
        return
    built = path("runtime")
    os.makedirs(built, exist_ok=True)

    def build(command):
        done = subprocess.run(command, capture_output=True, text=True)
        check(done.returncode == 0, f"{command}: {done.stderr}")

    program = os.path.join(built, "program.o")
    build([nvcc, "-arch=sm_90", "-cudart", "none", "-c", "-o", program,
           os.path.join(sources, "runtime_program.cu")])
    library = os.path.join(built, "libcudart.so.13")
    build(["c++", "-shared", "-o", library, runtime_object, "-Wl,-soname,libcudart.so.13", "-ldl"])
    build(["c++", "-o", os.path.join(built, "static"), program, runtime_object, "-ldl"])
    build(["c++", "-o", os.path.join(built, "shared"), program, library, "-ldl"])
    global stub
    driver = stub
    try:
        stub = driver + ":" + built
        for kind in ("static", "shared"):
            done, figures, events = attach([os.path.join(built, kind)])
            check(done.returncode == 0 and "done: 0" in done.stdout, f"runtime, {kind}: {done}")
            names = {n["name"]: n["count"] for n in figures["names"]}
            check(names.get("heavy(int*, int)") == 2 and names.get("light(int*, int)") == 2,
                  f"runtime, {kind}: {names}")
            launches = [e for e in slices(events, "runtime") if "LaunchKernel" in e["name"]]
            # Inside the program no one can stand before the runtime's own functions.
            check(len(launches) == (4 if kind == "shared" else 0),
                  f"runtime, {kind}: {len(launches)} launches of the runtime")
    finally:
        stub = driver
    # NVIDIA's runtime refuses our driver, but every function that it asks for is wrapped by then.
    for kind in ("static", "shared"):
        real = os.path.join(built, "real_" + kind)
        build([nvcc, "-arch=sm_90", "-cudart", kind, "-o", real, program])
        lib = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(nvcc))), "lib64")
        stub = driver + ":" + lib
        done, figures, events = attach([real])
        stub = driver
        check(done.returncode == 4 and "refused" in done.stdout,
              f"NVIDIA's runtime, {kind}: {done}")
        asked = [e for e in slices(events or [], "driver")
                 if e["name"].startswith("cuGetProcAddress")]
        check(len(asked) > 200, f"NVIDIA's runtime, {kind}: {len(asked)} functions asked for")
        check(any(e["name"] == "cuInit" for e in slices(events or [], "driver")),
              f"NVIDIA's runtime, {kind}: cuInit through cuGetProcAddress was not seen")


def test_bad_input():
    program = os.path.join(programs, "driver_program")

    def refused(arguments, text):
        done = run(arguments)
        check(done.returncode == 2 and text in done.stderr, f"{arguments}: {done}")

    refused(["attach"], "name a program")
    refused(["attach", "--", "/nowhere/program"], "")
    simulated = ["attach", "--source", "sim:" + path("sensor.json"), "--truth", path("truth")]
    refused(simulated + ["--", "/nowhere/program"], "/nowhere/program: No such file")
    refused(["attach", "--source", "sim:" + path("sensor.json"), "--", program], "--truth")
    refused(simulated + ["--timing", "guess", "--", program], "--timing guess")
    refused(simulated + ["--rate", "0", "--", program], "--rate")
    refused(simulated + ["--library", "/nowhere.so", "--", program], "/nowhere.so")
    refused(simulated + ["-o", "/nowhere/run.csv", "--", program], "/nowhere/run.csv")
    with open(path("bad_truth"), "w") as f:
        f.write("# idle 20\n1 2\n")
    refused(["attach", "--source", "sim:" + path("sensor.json"), "--truth", path("bad_truth"),
             "--lead",
             "0", "--tail", "0", "--", program, "dlsym", "1", "10"], "line 2")
    done, figures, _ = attach(["true"])
    check(done.returncode == 0 and "no call of CUDA was seen" in done.stdout, f"no CUDA: {done}")
    refused(["compare", "/nowhere.csv"], "/nowhere.csv")
    with open(path("empty.csv"), "w") as f:
        f.write("time_s,power_W\n")
    refused(["compare", path("empty.csv")], "empty.csv")
    with open(path("falls.csv"), "w") as f:
        f.write("time_s,power_W\n2,5\n1,5\n")
    refused(["compare", path("falls.csv")], "falls.csv")
    check(run(["compare", path("falls.csv"), "--sort"]).returncode == 0, "compare --sort")
    refused(["microbench", "--rows", "nonsense"], "nothing is called nonsense")
    refused(["microbench", "--optimization", "9"], "--optimization 9")
    refused(["microbench", "--cuda-library", "/nowhere.so"], "no CUDA driver")
    refused(["microbench", "--emit", path("emitted"), "--unroll", "99999"], "--unroll 99999")


def main():
    os.makedirs(folder, exist_ok=True)
    sensor = {"update_period_s": 0.005, "window_s": 0.004, "lag_s": 0.02, "noise_W": 0.1,
              "poll_s": 0.0002}
    json.dump({"sensor": sensor}, open(path("sensor.json"), "w"))
    profile = {"format": "gpusim power sensor", "name": "of the simulated sensor",
               "capacitance_s": 0.02, "slope": "symmetric", "slope_points": 3,
               "active_idle_W": 20, "update_period_s": 0.005, "window_s": 0.004}
    json.dump(profile, open(path("profile.json"), "w"))
    for test in (test_ways_of_finding, test_methods_and_truth, test_processes, test_runtime,
                 test_bad_input):
        test()
    for reason in skipped:
        print("skipped:", reason)
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
