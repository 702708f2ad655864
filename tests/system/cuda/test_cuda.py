#!/usr/bin/env python3
"""Unmodified CUDA programs under `gpusim cuda`.  usage: test_cuda.py GPUSIM FOLDER BACKEND

Programs check their own results. Exit status 77: there is no nvcc.
"""
import json
import subprocess
import sys

from cuda_programs import check, failures, from_command_line


def test_self_checking(p):
    """Each program with both runtimes."""
    for name in ("basic", "api", "calls", "matrices", "streams", "faulting"):
        made = p.object_of(name)
        for runtime in ("static", "shared"):
            done = p.expect_fine(p.link(f"{name}-{runtime}", [made], "-cudart", runtime))
            if name == "faulting":
                check("kernel" in done.stderr and "store" in done.stderr,
                      f"faulting: its kernel is not named:\n{done.stderr}")


def test_other_builds(p):
    objects = [p.object_of(name, "-rdc=true") for name in ("separable_main", "separable_other")]
    p.expect_fine(p.link("separable", objects, "-rdc=true"))
    legacy = p.object_of("basic", "-Xcompiler", "-D__NV_LEGACY_LAUNCH", "--compress-mode=speed")
    p.expect_fine(p.link("basic-legacy", [legacy]))
    per_thread = p.object_of("basic", "--default-stream", "per-thread", "--no-compress")
    p.expect_fine(p.link("basic-per-thread", [per_thread], "-cudart", "shared"))
    driver = p.driver()
    if driver is not None:
        p.expect_fine(*driver)


def test_nvrtc(p):
    """Kernels that programs compile, machine code asked for or not; nothing is said of NVRTC."""
    for runtime in ("shared", "static"):
        program = p.nvrtc(runtime)
        if program is not None:
            done = p.expect_fine(program)
            check("not supported" not in done.stderr, f"nvrtc: {done.stderr}")
    program = p.static_nvrtc()
    if program is not None:
        p.expect_fine(program)


def test_statistics(p, backend):
    stats = p.folder / "stats.json"
    program = p.folder / "basic-static"
    done = p.run(program, options=["--stats", str(stats), "--list-launches"])
    found = json.loads(stats.read_text())
    kernels = {k["symbol"]: k for k in found["kernels"]}
    add = kernels["_Z3addPKfS0_Pfi"]
    check(add["name"] == "add(float const*, float const*, float*, int)", f"name: {add['name']}")
    check(add["launches"] == 1 and add["threads"] == 1024, f"counts of add: {add}")
    check(add["instructions"] == sum(add["opcodes"].values()), "opcodes do not sum up")
    # Each of 1,000 threads adds once, loads twice and stores once; 24 leave before.
    loads = sum(n for o, n in add["opcodes"].items() if o.startswith("ld.global"))
    stores = sum(n for o, n in add["opcodes"].items() if o.startswith("st.global"))
    adds = sum(n for o, n in add["opcodes"].items() if o.startswith("add") and o.endswith("f32"))
    check((loads, stores, adds) == (2000, 1000, 1000), f"opcodes of add: {add['opcodes']}")
    check(found["isa"] == "ptx" and found["backend"] == backend and found["exit_status"] == 0,
          f"head of the statistics: {found}")
    check(found["launches"] == done.stderr.count("gpusim cuda: launch "), "lines of launches")
    quiet = p.run(program, options=["--quiet"])
    check(quiet.stderr == "", f"--quiet: {quiet.stderr}")


def test_status_and_output(p):
    done = p.run("sh", "-c", "echo out; echo err >&2; exit 7", options=["--quiet"])
    check((done.returncode, done.stdout, done.stderr) == (7, "out\n", "err\n"), f"sh: {done}")
    done = p.run("sh", "-c", "kill -9 $$", options=["--quiet"])
    check(done.returncode == 137, f"a program that is killed: {done.returncode}")


def test_refusals(p, gpusim):
    done = p.run("/nowhere/program")
    check(done.returncode == 2 and "/nowhere/program" in done.stderr, f"no program: {done}")
    done = p.run(p.folder / "basic-static", options=["--chip", "k20"])
    check(done.returncode == 2 and "there are: t4, a100" in done.stderr, f"--chip: {done}")
    done = subprocess.run([gpusim, "cuda"], capture_output=True, text=True, check=False)
    check(done.returncode == 2 and "name a program" in done.stderr, f"nothing: {done}")


def main():
    p, gpusim, backend = from_command_line(__doc__)
    test_self_checking(p)
    test_other_builds(p)
    test_nvrtc(p)
    test_statistics(p, backend)
    test_status_and_output(p)
    test_refusals(p, gpusim)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
