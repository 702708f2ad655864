#!/usr/bin/env python3
"""Unmodified CUDA programs whose kernels run on backend cuda: memory and counts are scalar's.

  test_cuda_device.py GPUSIM EMULATED DEVICE-LIBRARY FOLDER

EMULATED is gpusim with the emulated device, DEVICE-LIBRARY the real backend's library, or nothing.
Exit status 77: there is no nvcc.
"""
import json
import os
import pathlib
import random
import re
import subprocess
import sys

import texture_model
from cuda_programs import Programs, check, failures

FINE = "all fine"


class Both:
    """The programs of this test, on scalar and on cuda."""

    def __init__(self, gpusim, emulated, folder):
        self.programs = {"scalar": gpusim, "cuda": emulated}
        self.folder = pathlib.Path(folder)
        self.built = Programs(folder, self.run_on_device)

    def run(self, backend, program, *arguments, options=(), environment=()):
        # Without randomised addresses, which some programs have in memory.
        return subprocess.run(
            ["setarch", "-R", self.programs[backend], "cuda", "--backend", backend, *options, "--",
             program, *arguments], capture_output=True, text=True, timeout=120, check=False,
            env={**os.environ, **dict(environment)})

    def run_on_device(self, program, *arguments, options=()):
        return self.run("cuda", program, *arguments, options=options)

    def result(self, backend, program, *arguments, expected=FINE, options=(), environment=()):
        """Of a run; None, and a failure, where it does not go well."""
        stats = self.folder / "stats.json"
        stats.unlink(missing_ok=True)
        done = self.run(backend, program, *arguments, environment=environment,
                        options=["--stats", stats, "--memory-digest", *options])
        check(done.returncode == 0 and expected in done.stdout,
              f"{program.name} {arguments} on {backend} {options}: {done.returncode}\n"
              f"{done.stdout}{done.stderr}")
        if done.returncode != 0:
            return None
        found = json.loads(stats.read_text())
        check(found["backend"] == backend, f"backend: {found['backend']}")
        return {
            "memory_digest": found["memory_digest"],
            "opcodes": {k["symbol"]: (k["launches"], k["threads"], k["opcodes"])
                        for k in found["kernels"]},
            "output": done.stdout,
            "gpus": {k["symbol"]: (k.get("gpus", 0), k.get("why_one_gpu", ""))
                     for k in found["kernels"]}}

    def compare(self, program, *arguments, expected=FINE, same=("memory_digest", "opcodes")):
        results = {backend: self.result(backend, program, *arguments, expected=expected)
                   for backend in self.programs}
        if None not in results.values():
            check_same(program, arguments, results["scalar"], results["cuda"], same)


def check_same(program, arguments, wanted, found, same):
    for what in same:
        check(wanted[what] == found[what], f"{program.name} {arguments}: {what} differ:\n"
                                           f"{wanted[what]}\n{found[what]}")


def faults_of(done):
    """What was said of kernels, without addresses and what lies there."""
    return [re.sub(r"0x[0-9a-f]+(: \d+ bytes b.*)?", "ADDRESS", line)
            for line in done.stderr.splitlines() if "kernel '" in line]


def test_programs(both):
    """Static and shared runtime, driver API, graphs, linked units, launches by kernels."""
    p = both.built
    for name in ("basic", "api", "streams"):
        both.compare(p.link(name, [p.object_of(name)]))
    both.compare(p.link("basic-shared", [p.folder / "basic.o"], "-cudart", "shared"))
    both.compare(p.link("digest", [p.object_of("digest")]), "3", expected="")
    both.compare(p.link("many_kernels", [p.object_of("many_kernels")]))
    both.compare(p.link("graph_nodes", [p.object_of("graph_nodes", "-rdc=true")], "-rdc=true",
                        "-lcudadevrt"))
    both.compare(p.link("separable", [p.object_of(name, "-rdc=true") for name in (
        "separable_main", "separable_other")], "-rdc=true"))
    # Threads spin, and how often depends on the order in which they run.
    both.compare(p.link("calls", [p.object_of("calls")]), same=())
    # Texts of errors have addresses of the process in memory.
    both.compare(p.link("launching", [p.object_of("launching", "-rdc=true")], "-rdc=true",
                        "-lcudadevrt"), same=("opcodes",))
    clusters = p.object_of("clusters", base=[
        "-std=c++17", "-gencode", "arch=compute_90,code=compute_90"])
    both.compare(p.link("clusters", [clusters]), same=())
    driver = p.driver()
    if driver is not None:
        both.compare(*driver, same=("opcodes",))


def test_faults(both):
    """A kernel that goes astray is named as on scalar, and the process goes on."""
    p = both.built
    program = p.link("faulting", [p.object_of("faulting")])
    told = {}
    for backend in ("scalar", "cuda"):
        done = both.run(backend, program)
        check(done.returncode == 0 and FINE in done.stdout, f"faulting: {done}")
        told[backend] = [line for line in done.stderr.splitlines() if "kernel '" in line]
    check(told["scalar"] == told["cuda"] != [], f"faults: {told}")


def test_textures(both):
    """Fetches give scalar's words, bit for bit; programs of the other backends' test do well."""
    p = both.built
    seed = int(os.environ.get("GPUSIM_SEED") or random.randrange(1 << 32))
    print("replay: GPUSIM_SEED =", seed)
    cases, texels = p.folder / "cases", p.link("texels", [p.object_of("texels")])
    asked = texture_model.random_cases(seed, per_op=4, places=24)
    texture_model.write_cases(cases, asked)
    words = {}
    for backend in both.programs:
        out = p.folder / f"texels-{backend}"
        done = both.run(backend, texels, cases, out)
        check(done.returncode == 0 and FINE in done.stdout, f"texels on {backend}: {done}")
        words[backend] = out.read_bytes() if out.exists() else b""
    check(words["scalar"] == words["cuda"] and
          len(words["cuda"]) == 16 * sum(len(places) for _, places in asked), "fetches differ")
    if p.stubs() is not None:
        both.compare(p.link("textures", [p.object_of("textures")], f"-L{p.stubs()}", "-lcuda"))
    program = p.link("textures_faulty", [p.object_of("textures_faulty", "-lineinfo")])
    for what in ("freed", "pointer", "null", "swapped", "outside", "nothing"):
        told = []
        for backend in both.programs:
            done = both.run(backend, program, what)
            told.append((done.stdout, faults_of(done)))
        check(told[0] == told[1], f"{what}: {told}")


# What several devices share of a launch of `several`: how many have a part of each kernel, or why
# one has it all; and what cannot be compared.
SHARED = {
    "shared": ({"bytes": 0, "sums": 0, "says": 0}, "", ("memory_digest", "opcodes", "output")),
    "atomics": ({"counts": 1}, "atomic operations on global memory", ("memory_digest", "opcodes")),
    "heap": ({"allocates": 1}, "calls malloc or free", ("memory_digest", "opcodes")),
    "cooperative": ({"meets": 1}, "it is cooperative", ("memory_digest",)),
    "waiting": ({"passes_on": 0}, "", ("memory_digest",)),  # blocks spin
    "fault": ({"strays": 0}, "", ()),
}


def test_several_devices(both):
    """A launch's blocks are dealt over devices; the result is that of one."""
    p = both.built
    program = p.link("several", [p.object_of("several")])
    for what, (kernels, why, same) in SHARED.items():
        wanted = both.result("scalar", program, what)
        for devices, count in (("1", 1), ("2,0", 2), ("all", 3)):
            if count == 1 and what != "shared":
                continue
            for memory in ("register,read-only", "register,read-only,atomics"):
                if memory.endswith("atomics") and what != "atomics":
                    continue
                found = both.result(
                    "cuda", program, what, options=["--devices", devices],
                    environment={"GPUSIM_EMULATED_CHIP": "sm_90,sm_90,sm_90",
                                 "GPUSIM_EMULATED_HOST_MEMORY": memory})
                if wanted is None or found is None:
                    continue
                check_same(program, (what, devices), wanted, found, same)
                for kernel, most in kernels.items():
                    gpus, reason = next(v for k, v in found["gpus"].items() if kernel in k)
                    is_one = most == 1 and not memory.endswith("atomics")
                    check(gpus == (0 if count == 1 else 1 if is_one else count),
                          f"{what} on {devices}: {gpus} GPUs")
                    check((why in reason and reason != "") == (is_one and count > 1),
                          f"{what} on {devices}, {memory}: {reason}")
    # The fault is named as elsewhere.
    told = [faults_of(done)
            for done in (both.run("scalar", program, "fault"),
                         both.run("cuda", program, "fault", options=["--devices", "all"],
                                  environment={"GPUSIM_EMULATED_CHIP": "sm_90,sm_90"}))]
    check(told[0] == told[1] != [], f"a fault on two devices: {told}")
    # What is pinned for the first device counts for all; programs of all kinds.
    for name in ("basic", "clusters", "textures"):
        other = p.folder / name
        if not other.exists():
            continue
        wanted = both.result("scalar", other)
        found = both.result("cuda", other, options=["--devices", "all"],
                            environment={"GPUSIM_EMULATED_CHIP": "sm_90,sm_90"})
        if wanted and found and name != "clusters":  # whose threads spin
            check_same(other, ("all",), wanted, found, ("memory_digest", "opcodes"))
    done = both.run("cuda", program, "shared", options=["--devices", "all", "--list-launches"],
                    environment={"GPUSIM_EMULATED_CHIP": "sm_90,sm_90"})
    check(", on 2 GPUs" in done.stderr, f"--list-launches: {done.stderr}")
    for backend, device, why in (("cuda", "2", "there is no GPU 2"),
                                 ("scalar", "0", "backend scalar has no devices to choose from"),
                                 ("cuda", "x", "expected all, or numbers")):
        done = both.run(backend, program, "shared", options=["--devices", device])
        check(done.returncode == 2 and why in done.stderr and FINE not in done.stdout,
              f"{backend} on {device}: {done}")
    # One of them fails: an error of CUDA, and the process goes on to its end.
    done = both.run("cuda", program, "shared", options=["--devices", "all"],
                    environment={"GPUSIM_EMULATED_CHIP": "sm_90,sm_90",
                                 "GPUSIM_EMULATED_FAILURES": "launch:40=719"})
    check(done.returncode == 1 and "FAILED" in done.stdout, f"a device that fails: {done}")


def test_refusals(both):
    program = both.folder / "basic"
    for options in (["--check"], ["--profile"], ["--caches", "x.json", "--stats", "s.json"]):
        done = both.run("cuda", program, options=options)
        check(done.returncode == 2 and "not for backend cuda; use simd or scalar" in done.stderr and
              FINE not in done.stdout, f"{options}: {done}")
    # Without a GPU the program is not even started.
    done = subprocess.run([both.programs["cuda"], "cuda", "--backend", "cuda", "--", program],
                          env={**os.environ, "GPUSIM_EMULATED_CHIP": "none"}, text=True,
                          capture_output=True, check=False)
    check(done.returncode == 2 and "backend cuda cannot run here" in done.stderr and
          FINE not in done.stdout, f"no device: {done}")


def test_driver_beside_ours(both, library):
    """The real backend's library opens the driver that it is told, not the one of this process."""
    stubs = both.built.stubs()
    if not library or stubs is None:
        print("without the toolkit's stub of the driver")
        return
    folder = pathlib.Path(both.programs["scalar"]).parent
    environment = {
        **os.environ, "GPUSIM_CUDA_BACKEND": "cuda", "GPUSIM_CUDA_DEVICE_LIBRARY": library,
        "GPUSIM_CUDA_DRIVER": str(stubs / "libcuda.so"), "LD_DEBUG": "files",
        "LD_PRELOAD": f"{folder}/libgpusim_cuda.so:{folder}/libgpusim_cuda_driver.so"}
    done = subprocess.run([both.folder / "digest", "1"], env=environment, text=True,
                          capture_output=True, check=False)
    check(f"calling init: {stubs}/libcuda.so" in done.stderr,
          "the driver's stub was not loaded")
    said = [line for line in done.stderr.splitlines() if line.startswith("gpusim cuda: ")]
    # What NVIDIA's runtime says of the stub.
    check(any("backend cuda cannot run here: no usable GPU" in line for line in said),
          f"with the stub: {said}")
    check(not any("cuGetExportTable" in line for line in said),
          "the runtime called this process's own driver")


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    gpusim, emulated, library, folder = sys.argv[1:]
    both = Both(gpusim, emulated, folder)
    test_programs(both)
    test_faults(both)
    test_textures(both)
    test_several_devices(both)
    test_refusals(both)
    test_driver_beside_ours(both, library)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
