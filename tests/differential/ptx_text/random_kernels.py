#!/usr/bin/env python3
"""Random PTX kernels on scalar, simd (native code in AVX-512 and AVX2, and none) and cuda: the same
memory and counts; ptxas takes each. Texts with a mistake end with a sentence.

  random_kernels.py GPUSIM COUNT [--emulated GPUSIM] [--ptxas PTXAS] [--judged]

--judged: what ptxas takes of the texts with a mistake must be taken here, too.

GPUSIM_SEED: of the first kernel, the following ones have the next numbers.
"""
import argparse
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

from random_kernel import BLOCK, OUT_BYTES, Kernel

BLOCKS = 5
TIMEOUT, ENDLESS = 300, 60  # seconds; a loop with a mistake in it may have no end


def run(gpusim, backend, text, folder, environment, timeout=TIMEOUT):
    """Status, what was said, memory, counts."""
    out, sums, stats = folder / "out", folder / "sums", folder / "stats"
    for path in (out, sums, stats):
        path.unlink(missing_ok=True)
    done = subprocess.run(
        [gpusim, "run", text, "--grid", str(BLOCKS), "--block", str(BLOCK), "--arg",
         f"buffer:{BLOCKS * BLOCK * OUT_BYTES}>{out}", "--arg", f"buffer:32>{sums}", "--backend",
         backend, "--quiet", "--stats", stats], capture_output=True, text=True, check=False,
        timeout=timeout, env={**os.environ, **environment})
    if done.returncode != 0:
        return done.returncode, done.stderr, None, None
    found = json.loads(stats.read_text())
    return 0, "", out.read_bytes() + sums.read_bytes(), found["kernels"][0]["opcodes"]


def mutated(text, chance):
    """One token of the body is another one's, or is gone, or is there twice."""
    head, body = text.split("{", 1)
    tokens = re.findall(r"\s+|[%$\w.]+|.", body)
    places = [k for k, token in enumerate(tokens) if not token.isspace()]
    at, other = chance.choice(places), chance.choice(places)
    kind = chance.randrange(3)
    tokens[at] = tokens[other] if kind == 0 else " " if kind == 1 else f"{tokens[at]} {tokens[at]}"
    return head + "{" + "".join(tokens)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("gpusim")
    parser.add_argument("count", type=int)
    parser.add_argument("--emulated")
    parser.add_argument("--ptxas")
    parser.add_argument("--judged", action="store_true")
    o = parser.parse_args()
    first = int(os.environ.get("GPUSIM_SEED") or random.randrange(1 << 32))
    print(f"replay: GPUSIM_SEED={first}", flush=True)
    ways = [("simd", o.gpusim, {}),
            ("simd", o.gpusim, {"GPUSIM_NATIVE_CODE": "avx2"}),
            ("simd", o.gpusim, {"GPUSIM_NATIVE_CODE": "none"})]
    if o.emulated:
        ways.append(("cuda", o.emulated, {}))
    wrong, judged = [], {"both": 0, "neither": 0, "only here": 0, "endless": 0}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        text = folder / "random.ptx"
        for seed in range(first, first + o.count):
            if (seed - first) % 100 == 99:
                print(f"before seed {seed}: {judged}, {len(wrong)} wrong", *wrong, sep="\n",
                      flush=True)
            kernel = Kernel(seed)
            text.write_text(kernel.text)
            if o.ptxas:
                done = subprocess.run([o.ptxas, "-arch=sm_80", text, "-o", "/dev/null"],
                                      capture_output=True, text=True, check=False)
                if done.returncode != 0:
                    wrong.append(f"seed {seed}: ptxas: {done.stderr or done.stdout}")
            expected = run(o.gpusim, "scalar", text, folder, {})
            if expected[0] != 0:
                wrong.append(f"seed {seed}: scalar: {expected[1]}")
            for backend, gpusim, environment in ways:
                if run(gpusim, backend, text, folder, environment) != expected:
                    wrong.append(f"seed {seed}: {backend} {environment} differs from scalar")
            # A mistake in the text may be one of the run, such as an address, or none.
            text.write_text(mutated(kernel.text, random.Random(seed)))
            try:
                status, said, _, _ = run(o.gpusim, "simd", text, folder, {}, ENDLESS)
            except subprocess.TimeoutExpired:
                # The loop is the kernel's unless gpusim does not get as far as its arguments.
                done = subprocess.run([o.gpusim, "run", text], capture_output=True, text=True,
                                      check=False, timeout=TIMEOUT)
                status, said = 0, ""
                judged["endless"] += 1
                if "parameters, and there are 0 --arg" not in done.stderr:
                    wrong.append(f"seed {seed}, with a mistake: hangs: {done.stderr}")
            if status not in (0, 2, 139) or (status != 0 and not said):
                wrong.append(f"seed {seed}, with a mistake: status {status}: {said}")
            if o.ptxas:
                takes = subprocess.run([o.ptxas, "-arch=sm_80", text, "-o", "/dev/null"],
                                       capture_output=True, check=False).returncode == 0
                if takes and status == 2 and o.judged:
                    wrong.append(f"seed {seed}, with a mistake: ptxas takes it: {said}")
                judged["both" if takes else "neither" if status == 2 else "only here"] += 1
    print(f"{o.count} kernels; with a mistake: {judged}")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
