#!/usr/bin/env python3
"""gpusim power microbench from the command to the target that gpusim energy uses, in real time,
against our stand-ins for the driver and its sensor.

usage: test_microbench.py GPUSIM STUB_CUDA STUB_NVML FOLDER
"""
import ctypes
import json
import os
import subprocess
import sys

gpusim, cuda, nvml, folder = sys.argv[1:5]
failures = []


def check(condition, text):
    if not condition:
        failures.append(text)
        print("FAILED:", text)


def path(name):
    return os.path.join(folder, name)


def run(*arguments):
    environment = dict(os.environ, GPUSIM_STUB_TRUTH=path("truth"))
    return subprocess.run([gpusim, *arguments], capture_output=True, text=True, env=environment,
                          timeout=120)


def main():
    os.makedirs(folder, exist_ok=True)
    for name in ("truth", "mine.json"):
        if os.path.exists(path(name)):
            os.remove(path(name))
    done = run("power", "microbench", "--rows", "add.s32,div.s32", "--optimization", "3",
               "--seconds",
               "0.3", "--settle", "0.1", "--repeats", "2", "--sensor-error", "0.02", "-o",
               path("mine.json"), "--cuda-library", cuda, "--nvml-library", nvml)
    check(done.returncode == 0, f"microbench: {done.returncode} {done.stderr}")
    check("add.s32" in done.stdout and "Stub GPU 1" in done.stdout, done.stdout)
    target = json.load(open(path("mine.json")))
    stub = ctypes.CDLL(cuda)
    stub.gpusim_stub_energy.restype = ctypes.c_double
    for name, error in (("add.s32", 0.25), ("div.s32", 0.1)):
        true = stub.gpusim_stub_energy(name.encode()) * 1e9
        m = target["measurements"][name]
        # A busy machine makes gaps between launches, which cost idle power and time alike.
        check(abs(m["value"] / true - 1) < error, f"{name}: {m['value']} nJ, truly {true}")
        check(m["low"] <= m["value"] <= m["high"], f"{name}: {m}")
    check(abs(target["operating_states"][0]["idle_power"]["value"] - 20) < 1, "idle power")
    listed = run("energy", "targets", path("mine.json"))
    check(listed.returncode == 0 and "stub-gpu-1" in listed.stdout, f"energy targets: {listed}")
    with open(path("trace"), "w") as f:
        f.write("Kernel name: k\n\nInteger_arithmetic: 1000000\nInteger_division: 1000\n")
    used = run("energy", "estimate", path("trace"), "--target", path("mine.json"))
    check(used.returncode == 0 and "stub-gpu-1" in used.stdout, f"energy estimate: {used}")
    broken = run("power", "microbench", "--rows", "add.s32", "--cuda-library", cuda,
                 "--nvml-library",
                 "/nowhere.so")
    check(broken.returncode == 2 and "/nowhere.so" in broken.stderr, f"no sensor: {broken}")
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
