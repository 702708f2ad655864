#!/usr/bin/env python3
"""Unmodified CUDA programs under `gpusim cuda`.  usage: test_cuda.py GPUSIM FOLDER BACKEND

Programs check their own results. Exit status 77: there is no nvcc.
"""
import json
import subprocess
import sys

from cuda_programs import SOURCES, check, failures, from_command_line


def test_self_checking(p):
    """Each program with both runtimes."""
    for name in ("basic", "api", "calls", "matrices", "streams", "faulting"):
        made = p.object_of(name)
        for runtime in ("static", "shared"):
            done = p.expect_fine(p.link(f"{name}-{runtime}", [made], "-cudart", runtime))
            if name == "faulting":
                check("kernel" in done.stderr and "store" in done.stderr,
                      f"faulting: its kernel is not named:\n{done.stderr}")


def test_many_kernels(p):
    """A hundred kernels: each is translated when it is launched."""
    program = p.link("many_kernels", [p.object_of("many_kernels")])
    stats = p.folder / "many.json"
    done = p.run(program, options=["--stats", stats])
    check((done.returncode, done.stdout) == (0, "all fine\n"), f"many_kernels: {done.stderr}")
    kernels = json.loads(stats.read_text())["kernels"]
    check([k["launches"] for k in kernels] == [1] * 100, "many_kernels: not each once")


def test_graph_nodes(p):
    """Graphs that decide and allocate."""
    made = p.object_of("graph_nodes", "-rdc=true")
    for runtime in ("static", "shared"):
        p.expect_fine(p.link(f"graph_nodes-{runtime}", [made], "-rdc=true", "-cudart", runtime,
                             "-lcudadevrt"))


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
        # As nvcc links it: of the runtime it imports nothing that programs call.
        p.expect_fine(p.link("driver-shared", [SOURCES / "driver.cpp"], "-w", "-cudart", "shared",
                             "-lcuda"), *driver[1:])


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


def test_device_launches(p):
    """Kernels that launch kernels: their order, what they hand over; counts; faults."""
    made = p.object_of("launching", "-rdc=true")
    for runtime in ("static", "shared"):
        program = p.link(f"launching-{runtime}", [made], "-rdc=true", "-cudart", runtime,
                         "-lcudadevrt")
        p.expect_fine(program)
    stats = p.folder / "launching.json"
    done = p.run(program, options=["--stats", str(stats), "--list-launches"])
    found = json.loads(stats.read_text())
    launches = {k["name"]: k["launches"] for k in found["kernels"]}
    check(launches["loop(int*, int)"] == 500 and launches["nested(Log*, int, int)"] == 10 and
          launches["leaf(Log*, int)"] == 7, f"launches: {launches}")
    check(found["launches"] == sum(launches.values()) ==
          done.stderr.count("gpusim cuda: launch "), "all launches are counted and listed")
    check("launch 2: nested(Log*, int, int) grid 1x1x1 block 1x1x1, by a kernel of launch 1:"
          in done.stderr, f"lines of launches: {done.stderr[:2000]}")
    check(found["device"].startswith("NVIDIA A100"), f"device: {found['device']}")
    done = p.run(program, "astray")
    check("an illegal memory access" in done.stdout and "kernel '_Z6astrayPi'" in done.stderr and
          "399999936 bytes behind the end of device memory of 64 bytes" in done.stderr,
          f"astray: {done.stdout}{done.stderr}")
    for what, why in (("local", "local and shared memory end with their threads"),
                      ("large", "only 48 bytes are there, in managed memory of 64 bytes")):
        done = p.run(program, what)
        check("an illegal memory access" in done.stdout and why in done.stderr,
              f"{what}: {done.stdout}{done.stderr}")
    done = p.run(program, "readonly")
    check("an illegal memory access" in done.stdout and
          "a kernel's cudaMemcpyAsync of 64 bytes at" in done.stderr and
          "which is read-only" in done.stderr, f"readonly: {done.stdout}{done.stderr}")
    done = p.run(program, "astray", options=["--check=memory"])
    check("launch 2: out of bounds: kernel 'astray(int*)'" in done.stderr,
          f"astray, checked: {done.stderr}")


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
    check("each_launch" not in found and "memory_digest" not in found, "nobody asked for them")
    quiet = p.run(program, options=["--quiet"])
    check(quiet.stderr == "", f"--quiet: {quiet.stderr}")


def test_each_launch_and_memory(p):
    """Launches add up to their kernels; equal runs leave equal memory, others do not."""
    stats = p.folder / "each.json"
    made = p.object_of("digest")
    program = p.link("digest", [made])

    def run_it(*arguments):
        command = ["setarch", "-R", *p.command(program, *arguments, options=[
            "--stats", str(stats), "--each-launch", "--memory-digest"])]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        check(done.returncode == 0, f"digest: {done}")
        return json.loads(stats.read_text())
    found = run_it("1")
    launches = found["each_launch"]
    check([(l["launch"], l["symbol"], l["grid"], l["block"], l["threads"], l["warps"])
           for l in launches] ==
          [(1, "_Z4fillPii", [3, 2, 1], [40, 1, 1], 240, 12),
           (2, "_Z4fillPii", [1, 1, 1], [32, 2, 1], 64, 2)], f"each launch: {launches}")
    for kernel in found["kernels"]:
        own = [l for l in launches if l["symbol"] == kernel["symbol"]]
        check(sum(l["instructions"] for l in own) == kernel["instructions"], "sums of launches")
        check(all(sum(l["opcodes"].get(o, 0) for l in own) == n
                  for o, n in kernel["opcodes"].items()), "opcodes of launches")
    digests = [found["memory_digest"], *(run_it(x)["memory_digest"] for x in ("1", "2"))]
    check(digests[0] == digests[1] != digests[2], f"digests: {digests}")


def test_caches(p):
    stats, caches = p.folder / "caches.json", p.folder / "shape.json"
    program = p.folder / "digest"
    caches.unlink(missing_ok=True)
    done = p.run(program, "1", options=["--caches", str(caches), "--stats", str(stats)])
    check(done.returncode == 2 and "shape.json" in done.stderr, f"no description: {done}")
    caches.write_text(json.dumps({"line_bytes": 128, "multiprocessors": 4, "levels": [
        {"name": "L1", "size": "16K", "ways": 4, "cores": 1024},
        {"name": "L2", "size": "64K", "ways": 8, "cores": "all"}]}))
    done = p.run(program, "1", options=["--caches", str(caches), "--stats", str(stats)])
    (kernel,) = json.loads(stats.read_text())["kernels"]
    found = kernel["profile"]["caches"]
    # Each of 240 and 64 threads stores a word; each line of 128 bytes is fetched once.
    check(found["accesses"] == 304 and found["memory_reads"] == 10,
          f"caches: {done.stderr}{found}")
    done = p.run(program, "1", options=["--caches", str(caches)])
    check(done.returncode == 2 and "--caches needs --profile or --stats" in done.stderr,
          f"--caches alone: {done}")


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
    test_graph_nodes(p)
    test_many_kernels(p)
    test_other_builds(p)
    test_nvrtc(p)
    test_device_launches(p)
    test_statistics(p, backend)
    test_each_launch_and_memory(p)
    test_caches(p)
    test_status_and_output(p)
    test_refusals(p, gpusim)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
