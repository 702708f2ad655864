#!/usr/bin/env python3
"""What the GPU backend is aimed at, measured: steps of scripts/gpu-check. Needs python3 alone.

  gpu_aims.py [--folder FOLDER] [--results FOLDER] [--small] AIM

AIM: throughput, mean, cost, cpus, energy, kernel, offload; or compiler, which says what compiles
hot code, and fails where nothing does. FOLDER is what gpu-check staged. Each
prints what was measured, and a line "AIM ...: met" or "missed". The exit status is 1 only where
something did not work or gave another result: no time decides. --small: inputs for an emulated
device, whose times mean nothing.
"""
import argparse
import ctypes
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

TWELVE = ["matmul_int", "matmul_float", "sobel", "idct", "fft", "fft_batch", "bitonic_sort",
          "nbody", "histogram", "mandelbrot", "bfs", "face_detection"]
TIMES = 3          # the best of so many runs
CONVERGED = 0.1    # lanes that simd loses to divergence, at most


class Failure(Exception):
    pass


class Aims:
    def __init__(self, options):
        self.folder, self.results = options.folder, options.results
        self.small = options.small
        self.cores = [128, 256] if self.small else [65536, 262144, 1048576]
        self.compiles = None
        self.bad = False

    # --- runs of gpusim

    def program(self, name):
        path = self.folder / "guests" / f"{'small' if self.small else 'long'}_{name}.elf"
        return path if path.is_file() else None

    def command(self, program, backend, cores, *more):
        words = [self.folder / "bin/gpusim", "run", "--quiet", "--backend", backend, "--cores",
                 cores, *more, program]
        return [str(word) for word in words]

    def run(self, program, backend, cores, *more):
        """Of one run: output, instructions, seconds, lanes lost to divergence."""
        with tempfile.TemporaryDirectory() as name:
            stats = pathlib.Path(name) / "stats.json"
            done = subprocess.run(self.command(program, backend, cores, "--stats", stats, *more),
                                  capture_output=True, timeout=300, check=False)
            if done.returncode:
                raise Failure(f"{program.name} on {cores} cores of {backend}: status "
                              f"{done.returncode}: {done.stderr.decode(errors='replace')[-300:]}")
            told = json.loads(stats.read_text())
        return {"output": done.stdout, "instructions": told["guest_instructions"],
                "seconds": max(told["seconds"], 1e-9), "diverged": told.get("divergence") or 0}

    def best(self, program, backend, cores, *more):
        runs = [self.run(program, backend, cores, *more) for _ in range(1 if self.small else TIMES)]
        if any(r["output"] != runs[0]["output"] for r in runs):
            raise Failure(f"{program.name} on {cores} cores of {backend}: outputs differ")
        return min(runs, key=lambda r: r["seconds"])

    def gpu_options(self):
        """Compiled regions, where a compiler is."""
        if self.compiles is None:
            what = "an emulated device" if self.small else compiler_of_regions()
            self.compiles = bool(what)
            print(f"hot code is compiled: {what}" if what else
                  "hot code is interpreted: neither NVRTC nor nvcc here")
        return ["--compiled-regions", "wait"] if self.compiles else []

    def on_gpu(self, program, cores):
        options = self.gpu_options()
        if self.compiles:
            self.run(program, "cuda", cores, *options)  # compiles, or finds it in the cache
        return self.best(program, "cuda", cores, *options)

    def on_cpus(self, program, cores):
        return self.best(program, "simd", cores, "--threads", os.cpu_count())

    # --- aims

    def say(self, aim, is_met):
        print(f"AIM {aim}: {'met' if is_met else 'missed'}", flush=True)

    def rates(self):
        """The integer matrix product by numbers of cores: what the run gives, and what more work
        takes, which leaves start and end of the cores out."""
        more = self.program("matmul_int_more")
        rows = []
        print(f"{'cores':>9} {'run, GIPS':>12} {'between sizes, GIPS':>20}")
        for cores in self.cores:
            less = self.on_gpu(self.program("matmul_int"), cores)
            row = {"run": less["instructions"] / less["seconds"] / 1e9, "between": 0}
            if more:
                large = self.on_gpu(more, cores)
                row["run"] = large["instructions"] / large["seconds"] / 1e9
                seconds = large["seconds"] - less["seconds"]
                if seconds > 0:
                    row["between"] = (large["instructions"] - less["instructions"]) / seconds / 1e9
            rows.append(row)
            print(f"{cores:9d} {row['run']:12.1f} {row['between']:20.1f}", flush=True)
        return rows

    def throughput(self):
        rows = self.rates()
        for aim in (1000, 5000):
            self.say(f"at least {aim} GIPS on the integer matrix product from {self.cores[0]} "
                     "cores on", all(row["between"] >= aim for row in rows))

    def cost(self):
        rows = self.rates()
        for what in ("run", "between"):
            first, last = rows[0][what], rows[-1][what]
            # A rate of 0 was not measured: what more work takes was lost in the noise.
            ratio = first / last if first and last else math.inf
            print(f"cost per instruction on {self.cores[-1]} cores, {what}: "
                  f"{f'{ratio:.2f} times' if first and last else 'not measured beside'} that on "
                  f"{self.cores[0]}")
            self.say(f"cost per instruction within 1.3 times ({what})", ratio <= 1.3)

    def twelve(self):
        """Of the twelve examples on 65,536 cores, on GPU and processors; kept for the next step."""
        kept = self.results / "twelve.json"
        if kept.is_file():
            return json.loads(kept.read_text())
        rows = []
        for name in TWELVE:
            program = self.program(name)
            if not program:
                print(f"{name}: not staged")
                continue
            try:
                gpu = self.on_gpu(program, self.cores[0])
                cpus = self.on_cpus(program, self.cores[0])
            except (Failure, subprocess.TimeoutExpired) as failure:
                print(failure)
                self.bad = True
                continue
            same = gpu["output"] == cpus["output"]
            self.bad |= not same
            rows.append({"name": name, "instructions": gpu["instructions"], "gpu": gpu["seconds"],
                         "cpus": cpus["seconds"], "diverged": cpus["diverged"], "same": same})
        if not self.bad:
            kept.write_text(json.dumps(rows))
        return rows

    def mean(self):
        rows = self.twelve()
        rates = []
        print(f"{'program':<16} {'G instructions':>14} {'GIPS':>9} output")
        for row in rows:
            rates.append(row["instructions"] / row["gpu"] / 1e9)
            print(f"{row['name']:<16} {row['instructions'] / 1e9:14.2f} {rates[-1]:9.1f} "
                  f"{'same' if row['same'] else 'DIFFERS'}")
        if not rates:
            raise Failure("no example ran")
        geometric = math.exp(sum(map(math.log, rates)) / len(rates))
        print(f"{len(rates)} examples, geometric mean {geometric:.1f} GIPS, arithmetic "
              f"{sum(rates) / len(rates):.1f}")
        self.say("at least 100 GIPS in the mean of the twelve examples",
                 len(rates) == len(TWELVE) and geometric >= 100)

    def cpus(self):
        rows = self.twelve()
        print(f"{os.cpu_count()} host threads")
        print(f"{'program':<16} {'GPU, s':>9} {'CPUs, s':>9} {'ratio':>7} lanes lost")
        for row in rows:
            print(f"{row['name']:<16} {row['gpu']:9.3f} {row['cpus']:9.3f} "
                  f"{row['cpus'] / row['gpu']:7.2f} {100 * row['diverged']:.0f} %")
        converged = [row for row in rows if row["diverged"] <= CONVERGED]
        self.say("faster than this machine's processors on every converged example",
                 bool(converged) and all(row["gpu"] < row["cpus"] for row in converged))

    def energy(self):
        meters = {"cuda": gpu_meter(), "simd": cpu_meter()}
        names = ["matmul_int"] if self.small else ["matmul_int", "sobel", "fft"]
        print(f"{'program':<16} {'GPU, nJ':>9} {'CPUs, nJ':>9}   per guest instruction; all that "
              "the card and the processors draw meanwhile, each for its own run")
        for name in names:
            row = {}
            for backend, meter in meters.items():
                if meter is None:
                    continue
                options = self.gpu_options() if backend == "cuda" else ["--threads", os.cpu_count()]
                program, cores = self.program(name), self.cores[0]
                self.run(program, backend, cores, *options)
                instructions, begin, start = 0, meter(), time.monotonic()
                while time.monotonic() - start < (0 if self.small else 5) or not instructions:
                    instructions += self.run(program, backend, cores, *options)["instructions"]
                row[backend] = 1e9 * (meter() - begin) / instructions
            print(f"{name:<16} " + " ".join(f"{row[b]:9.2f}" if b in row else f"{'-':>9}"
                                            for b in meters), flush=True)
        for backend, meter in meters.items():
            if meter is None:
                print("no energy of " + {"cuda": "the GPU: no NVML, or no driver, here",
                                         "simd": "the processors: no counters in "
                                                 "/sys/class/powercap"}[backend])
        self.say("energy per guest instruction beside the processors'", all(meters.values()))

    def bench(self, backend):
        """Microseconds of kernels through the daemon (tests/system/daemon/bench.cpp)."""
        environment = os.environ | {"GPUSIM_DAEMON": str(self.folder / "bin/gpusim"),
                                    "GPUSIM_KERNELS_FOLDER": str(self.folder / "guests/daemon")}
        environment.pop("GPUSIM_BACKEND", None)
        options = ["--compiled-regions", "wait"] if backend == "cuda" and self.gpu_options() else []
        if self.small:
            options.append("--small")
        done = subprocess.run([self.folder / "bin/daemon_bench", "--aims", "--backend", backend,
                               *options],
                              env=environment, capture_output=True, text=True, timeout=300,
                              check=False)
        print(f"daemon --backend {backend}:\n{done.stdout}{done.stderr}", flush=True)
        if done.returncode:
            raise Failure(f"daemon_bench: status {done.returncode}")
        values = {}
        for line in done.stdout.splitlines():
            name, found, rest = line.partition(": median ")
            if found:
                values[name] = float(rest.split()[0])
        return values

    def kernel(self):
        values = self.bench("cuda")
        self.say("an empty kernel from the guest within 40 us (without the trap out of QEMU)",
                 values["empty kernel, 1 core"] <= 40)

    def offload(self):
        gpu, cpus = self.bench("cuda"), self.bench("simd")
        work = next(name for name in gpu if name.startswith("work"))
        ratio = cpus[work] / gpu[work]
        print(f"{work}: {ratio:.2f} times as fast as the processors")
        self.say("100 M instructions on 65,536 cores at least 5 times as fast as on processors",
                 ratio >= 5)


def compiler_of_regions():
    """What compiles hot code here, as gpusim looks for it (device_sim/cuda/compiled), or None."""
    chosen = os.environ.get("GPUSIM_NVRTC")
    for name in [chosen] if chosen else ["libnvrtc.so.13", "/usr/local/cuda/lib64/libnvrtc.so.13"]:
        try:
            ctypes.CDLL(name)
            return f"NVRTC ({name})"
        except OSError:
            pass
    nvcc = shutil.which("nvcc")
    return f"nvcc ({nvcc})" if nvcc else None


def load(name):
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None


def gpu_meter(nvml=None, cuda=None):
    """Joules since the driver was loaded of the GPU that runs use: CUDA's first one, which NVML may
    count otherwise (CUDA_VISIBLE_DEVICES, CUDA_DEVICE_ORDER)."""
    nvml = nvml or load(os.environ.get("GPUSIM_NVML", "libnvidia-ml.so.1"))
    cuda = cuda or load("libcuda.so.1")
    if nvml is None or cuda is None or nvml.nvmlInit_v2() or cuda.cuInit(0):
        return None
    number, place = ctypes.c_int(), ctypes.create_string_buffer(32)
    device, value = ctypes.c_void_p(), ctypes.c_ulonglong()
    if (cuda.cuDeviceGet(ctypes.byref(number), 0) or
            cuda.cuDeviceGetPCIBusId(place, len(place), number) or
            nvml.nvmlDeviceGetHandleByPciBusId_v2(place.value, ctypes.byref(device))):
        return None

    def joules():
        if nvml.nvmlDeviceGetTotalEnergyConsumption(device, ctypes.byref(value)):
            raise Failure("NVML does not tell the GPU's energy")
        return value.value / 1e3
    return joules


def cpu_meter(folder="/sys/class/powercap"):
    """Joules of all packages."""
    zones = [p for p in pathlib.Path(folder).glob("intel-rapl:*")
             if p.name.count(":") == 1 and os.access(p / "energy_uj", os.R_OK)]
    if not zones:
        return None
    state = {zone: [int((zone / "energy_uj").read_text()), 0] for zone in zones}

    def joules():
        for zone, known in state.items():
            now = int((zone / "energy_uj").read_text())
            range_uj = int((zone / "max_energy_range_uj").read_text())
            known[1] += (now - known[0]) % (range_uj + 1)
            known[0] = now
        return sum(known[1] for known in state.values()) / 1e6
    return joules


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--small", action="store_true")
    parser.add_argument("aim", choices=["throughput", "mean", "cost", "cpus", "energy", "kernel",
                                        "offload", "compiler"])
    options = parser.parse_args()
    if options.aim == "compiler":
        print(compiler_of_regions() or "neither NVRTC nor nvcc here")
        return 0 if compiler_of_regions() else 1
    options.folder = options.folder.resolve()
    aims = Aims(options)
    try:
        getattr(aims, options.aim)()
    except (Failure, subprocess.TimeoutExpired) as failure:
        print(failure)
        return 1
    return 1 if aims.bad else 0


if __name__ == "__main__":
    sys.exit(main())
