#!/usr/bin/env python3
"""Unmodified CUDA programs whose kernels run on backend cuda: memory and counts are scalar's.

  test_cuda_device.py GPUSIM EMULATED DEVICE-LIBRARY FOLDER

EMULATED is gpusim with the emulated device, DEVICE-LIBRARY the real backend's library, or nothing.
Exit status 77: there is no nvcc.
"""
import json
import os
import pathlib
import subprocess
import sys

from cuda_programs import Programs, check, failures

FINE = "all fine"


class Both:
    """The programs of this test, on scalar and on cuda."""

    def __init__(self, gpusim, emulated, folder):
        self.programs = {"scalar": gpusim, "cuda": emulated}
        self.folder = pathlib.Path(folder)
        self.built = Programs(folder, self.run_on_device)

    def run(self, backend, program, *arguments, options=()):
        # Without randomised addresses, which some programs have in memory.
        return subprocess.run(
            ["setarch", "-R", self.programs[backend], "cuda", "--backend", backend, *options, "--",
             program, *arguments], capture_output=True, text=True, timeout=120, check=False)

    def run_on_device(self, program, *arguments, options=()):
        return self.run("cuda", program, *arguments, options=options)

    def compare(self, program, *arguments, expected=FINE, same=("memory_digest", "opcodes")):
        results, stats = {}, self.folder / "stats.json"
        for backend in self.programs:
            stats.unlink(missing_ok=True)
            done = self.run(backend, program, *arguments,
                            options=["--stats", stats, "--memory-digest"])
            check(done.returncode == 0 and expected in done.stdout,
                  f"{program.name} on {backend}: {done.returncode}\n{done.stdout}{done.stderr}")
            if done.returncode != 0:
                return
            found = json.loads(stats.read_text())
            check(found["backend"] == backend, f"backend: {found['backend']}")
            results[backend] = {
                "memory_digest": found["memory_digest"],
                "opcodes": {k["symbol"]: (k["launches"], k["threads"], k["opcodes"])
                            for k in found["kernels"]}}
        for what in same:
            check(results["scalar"][what] == results["cuda"][what],
                  f"{program.name}: {what} differ:\n{results['scalar'][what]}\n"
                  f"{results['cuda'][what]}")


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


def test_refusals(both):
    program = both.folder / "basic"
    for options in (["--check"], ["--profile"], ["--caches", "x.json", "--stats", "s.json"]):
        done = both.run("cuda", program, options=options)
        check(done.returncode == 2 and "not for backend cuda; use simd or scalar" in done.stderr and
              FINE not in done.stdout, f"{options}: {done}")
    p = both.built
    done = both.run("cuda", p.link("textures", [p.object_of("textures_faulty")]), "nothing")
    check("uses textures or surfaces" in done.stderr and "no error" not in done.stdout,
          f"textures: {done}")
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
    test_refusals(both)
    test_driver_beside_ours(both, library)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
