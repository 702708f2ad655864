#!/usr/bin/env python3
"""NVRTC and ptxas take the regions of all of GCC's torture programs, for several chips.

  torture_nvrtc.py --region-text FILE --build FOLDER [--isas aarch64,riscv64] [--levels O2]
                   [--chips 75,90,120] [--sample N [--rotate]] [--only PATTERN] [--together N]

Of each program all code with loops is compiled, not what is hot, as the kernel of regions alone.
Programs whose kernels differ in nothing but places and addresses are compiled once: more than half
have no loops but the run-time's. Several kernels are one source, each with a namespace of its own,
since NVRTC reads gpusim's headers once per source. One that spills more than a little is compiled
again by itself for fewer blocks per multiprocessor, as gpusim does. Prints registers and spills,
and programs that are not accepted. Exit status 77: there is no NVRTC.
"""

import argparse
import collections
import concurrent.futures
import fnmatch
import importlib.machinery
import importlib.util
import itertools
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[3]
TORTURE = ROOT / "tests/differential/torture"
sys.path[:0] = [str(TORTURE), str(ROOT / "tests/differential/qemu")]
import gcc_suite  # noqa: E402
import harness  # noqa: E402
import run_torture  # noqa: E402

FEW_BYTES = 1024  # compile_regions() of device_sim/cuda/compiled/nvrtc.cpp
KERNEL = "gpusim_simulate_regions"
TIMEOUT_S = 300


def gpu_regions():
    loader = importlib.machinery.SourceFileLoader("gpu_regions",
                                                  str(ROOT / "scripts/gpu-regions"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def source_of(region_text, elf):
    """The kernel of regions alone, or None where no code has loops."""
    with tempfile.TemporaryDirectory() as name:
        try:
            subprocess.run([region_text, name, "1", "all", elf], check=True, timeout=TIMEOUT_S,
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, text=True)
        except (subprocess.SubprocessError, OSError) as error:
            raise RuntimeError(f"{elf}: {getattr(error, 'stderr', None) or error}") from error
        source = (pathlib.Path(name) / "regions.cu").read_text()
    return source if "region_1(" in source else None


def without_places(source):
    """What is the same for programs whose code lies elsewhere."""
    lines = []
    for line in source.splitlines():
        line = re.sub(r"//.*|GPUSIM_MARK\(\d+\)", "", line)
        line = re.sub(r"\bP\d+", "P", line)
        line = re.sub(r"\bat = \d+", "at =", line)
        line = re.sub(r"case (0x)?[0-9a-f]+(ull)?", "case", line)
        line = re.sub(r"(GPUSIM_STEP\(\w+), \d+", r"\1", line)
        line = re.sub(r"count\(\d+", "count(", line)
        if "left -=" in line:  # a branch: its target and block
            line = re.sub(r"0x[0-9a-f]+ull", "", line)
        lines.append(re.sub(r"0x[0-9a-f]{5,}ull", "A", line))  # addresses
    return "\n".join(lines)


def in_namespace(source, number):
    """The same with names of its own, to stand beside others."""
    source = source.replace("namespace gpusim::cuda {", f"namespace gpusim::cuda::own{number} {{")
    source = source.replace(KERNEL, f"{KERNEL}_{number}")
    return "#undef GPUSIM_RESIDENT_BLOCKS\n" + source


class Table:
    """Registers and spills of all kernels of an ISA and a chip."""

    def __init__(self):
        self.rows, self.refused, self.seconds, self.fewer = {}, {}, 0.0, 0

    def text(self):
        spills = [s for _, s in self.rows.values() if s]
        registers = sorted(r for r, _ in self.rows.values())
        if not registers:
            return "no kernel"
        worst = max(self.rows, key=lambda name: self.rows[name][1])
        return (f"{len(self.rows)} accepted, {len(self.refused)} refused; registers: median "
                f"{statistics.median(registers):.0f}, most {registers[-1]}; {len(spills)} spill"
                + (f", median {statistics.median(spills):.0f} bytes, most {max(spills)} ({worst})"
                   if spills else "")
                + f"; {self.fewer} compiled for fewer blocks; {self.seconds:.0f} s")


def compile_group(tool, nvrtc, chip, group, table):
    """`group`: [(name, source)]."""
    text = "".join(in_namespace(source, i) for i, (_, source) in enumerate(group))
    cubin, log, seconds = nvrtc.compile(text, chip)
    table.seconds += seconds
    if cubin is None and len(group) > 1:  # which of them?
        for one in group:
            compile_group(tool, nvrtc, chip, [one], table)
        return
    for i, (name, source) in enumerate(group):
        if cubin is None:
            table.refused[name] = log[:400]
            continue
        found = tool.used(log, f"{KERNEL}_{i}")
        if found["spills"] > FEW_BYTES:
            table.fewer += 1
            for blocks in (2, 1):
                here, own_log, seconds = nvrtc.compile(
                    f"#define GPUSIM_RESIDENT_BLOCKS {blocks}\n{source}", chip)
                table.seconds += seconds
                if here is None:
                    table.refused[name] = own_log[:400]
                    break
                found = tool.used(own_log, KERNEL)
                if found["spills"] <= FEW_BYTES:
                    break
        if name not in table.refused:
            table.rows[name] = (found["registers"], found["spills"])


def read_sources(options, folder, level, names, fail):
    """{name: source} of those with loops, once of each kernel; and how many programs each is of."""
    sources, copies = {}, collections.Counter()
    first = {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        elfs = [folder / level / run_torture.elf_name(name) for name in names]
        futures = [pool.submit(source_of, options.region_text, elf) for elf in elfs]
        for name, future in zip(names, futures):
            try:
                source = future.result()
            except RuntimeError as error:
                fail(str(error))
                continue
            if source:
                same = first.setdefault(without_places(source), name)
                copies[same] += 1
                if same == name:
                    sources[name] = source
    return sources, copies


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--region-text", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, required=True,
                        help="folder for guest programs, as of run_torture.py")
    parser.add_argument("--isas", default="aarch64,riscv64")
    parser.add_argument("--levels", default="O2")
    parser.add_argument("--chips", default="90,75,120")
    parser.add_argument("--sample", type=int, default=1)
    parser.add_argument("--rotate", action="store_true")
    parser.add_argument("--only", default="*")
    parser.add_argument("--progress", action="store_true", help="a line per source, on standard "
                        "error")
    parser.add_argument("--together", type=int, default=24, help="kernels per source")
    parser.add_argument("--nvrtc", default=os.environ.get("GPUSIM_NVRTC") or
                        "/usr/local/cuda/lib64/libnvrtc.so.13")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    tool = gpu_regions()
    try:
        nvrtc = tool.Nvrtc(options.nvrtc)
    except OSError as error:
        print(f"torture_nvrtc: {error}; --nvrtc names the library", file=sys.stderr)
        return 77
    options.seed = harness.seed_of(options.rotate)
    options.build = options.build.resolve()
    unpacked = gcc_suite.unpack(options.build, "gcc.c-torture/execute")
    failures = []

    def fail(text):
        failures.append(text)
        print("FAIL " + re.sub(r"\s+", " ", text), flush=True)

    for isa_name, level in itertools.product(options.isas.split(","), options.levels.split(",")):
        isa = run_torture.ISAS[isa_name]
        manifest = run_torture.read_manifest(TORTURE / isa.manifest)
        names = [name for name in manifest if fnmatch.fnmatchcase(name, options.only)]
        names = sorted(harness.draw(options, names, level))
        folder = options.build / isa.name if isa.name != "aarch64" else options.build
        run_torture.build(isa, names, level, unpacked, folder, options.jobs)
        sources, copies = read_sources(options, folder, level, names, fail)
        print(f"{isa_name} -{level}: {len(names)} programs, {sum(copies.values())} with loops, "
              f"{len(sources)} different kernels", flush=True)
        for chip in options.chips.split(","):
            table = Table()
            rest = list(sources.items())
            while rest:
                group, rest = rest[:options.together], rest[options.together:]
                compile_group(tool, nvrtc, chip, group, table)
                if sys.stderr.isatty() or options.progress:
                    print(f"  sm_{chip}, {len(rest)} left: {table.text()}", file=sys.stderr,
                          flush=True)
            print(f"  sm_{chip}: {table.text()}", flush=True)
            for name, log in table.refused.items():
                fail(f"{name} and {copies[name] - 1} like it, sm_{chip}: {log}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
