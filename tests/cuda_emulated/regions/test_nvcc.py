#!/usr/bin/env python3
"""nvcc and ptxas take the kernels that compiled regions become, without spills.

  test_nvcc.py --gpusim GPUSIM --chips 75,90 PROGRAM...

GPUSIM is the one with an emulated device: it writes the source that a GPU would get.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
ROOT = pathlib.Path(__file__).resolve().parents[3]
KERNEL = "gpusim_simulate_compiled"


def source_of(gpusim, program, folder):
    source = folder / (program.stem + ".cu")
    # Short slices: what is hot shows after two.
    subprocess.run([gpusim, "run", "--quiet", "--backend", "cuda", "--cores", "32",
                    "--slice", "300", program], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "GPUSIM_EMULATED_REGIONS_SOURCE": str(source)})
    return source


def compiled(nvcc, source, chip):
    """What ptxas says of the kernel: {"registers": 118, "spills": 0}."""
    done = subprocess.run([nvcc, f"-arch=sm_{chip}", "-std=c++20", "-O2", "--fmad=false",
                           "--expt-relaxed-constexpr", "--jump-table-density=50", f"-I{ROOT}",
                           "-cubin", "-Xptxas", "-v", "-o", os.devnull, source],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"nvcc does not take {source.name} for sm_{chip}:\n{done.stderr}")
    said = done.stderr[done.stderr.index(f"Compiling entry function '{KERNEL}'"):]
    return {"registers": int(re.search(r"Used (\d+) registers", said)[1]),
            "spills": int(re.search(r"(\d+) bytes spill stores", said)[1])}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpusim", required=True, type=pathlib.Path)
    parser.add_argument("--chips", required=True)
    parser.add_argument("programs", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    nvcc = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    if not nvcc:
        print("skipped: there is no nvcc")
        sys.exit(SKIPPED)
    spilled = False
    with tempfile.TemporaryDirectory() as folder:
        for program in arguments.programs:
            source = source_of(arguments.gpusim, program, pathlib.Path(folder))
            for chip in arguments.chips.split(","):
                used = compiled(nvcc, source, chip)
                print(f"{program.stem}, sm_{chip}: {used['registers']} registers, "
                      f"{used['spills']} bytes spilled", flush=True)
                spilled |= used["spills"] != 0
    sys.exit(1 if spilled else 0)


if __name__ == "__main__":
    main()
