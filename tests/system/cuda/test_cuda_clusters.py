#!/usr/bin/env python3
"""gpusim cuda: programs of clusters, compiled for sm_90.

usage: test_cuda_clusters.py GPUSIM FOLDER BACKEND     Exit status 77: there is no nvcc.
"""
import json
import sys

from cuda_programs import SOURCES, build, check, failures, from_command_line

FLAGS = {"clusters": ["-std=c++17", "-arch=sm_90"],
         # Some of it is only in what is for one chip.
         "bulk": ["-std=c++17", "-gencode", "arch=compute_90a,code=compute_90a"],
         "wgmma": ["-std=c++17", "-gencode", "arch=compute_90a,code=compute_90a"],
         "tensors": ["-std=c++20", "-gencode", "arch=compute_90a,code=compute_90a"],
         "images": ["-std=c++20", "-gencode", "arch=compute_90a,code=compute_90a"]}

# A mistake: what the program prints, what is said of the fault, what --check says.
MISTAKES = {
    "beyond": ("an illegal memory access was encountered",
               "loads from an address that it may not read, 0xf15",
               "shared memory of the cluster's block 5, and there are 2"),
    "lonely": ("unspecified launch failure", "waits for ever",
               "deadlock: kernel 'lonely(int*)', cluster of block (1,0,0): no thread can go on"),
    "twice": ("unspecified launch failure",
              "arrives at the cluster's barrier again before it has waited there", ""),
    "missing": ("no error", "",
                "divergent barrier: kernel 'missing(int*)', block (0,0,0), thread (7,0,0) and 0 "
                "others ended without coming to barrier.cluster.arrive"),
    "too_early": ("no error", "", "shared memory of the cluster's block 1, all threads of which "
                                  "have ended"),
}


def program(p, name, *flags):
    path = p.folder / f"{name}{len(flags)}"
    build([p.nvcc, *FLAGS[name], *flags, SOURCES / f"{name}.cu", "-o", path])
    return path


def test_self_checking(p, backend):
    for flags in ((), ("-cudart", "shared")):
        made = program(p, "clusters", *flags)
        p.expect_fine(made)
    checked = p.run(made, options=["--check"])
    check(checked.returncode == 0 and "0 findings" in checked.stderr,
          f"clusters, checked: {checked.stdout}{checked.stderr}")
    stats = [p.folder / f"stats{k}.json" for k in range(2)]
    for path in stats:
        p.run(made, options=["--stats", str(path)])
    first, second = (json.loads(path.read_text()) for path in stats)
    counts = [{k["symbol"]: k["opcodes"] for k in s["kernels"]} for s in (first, second)]
    check(counts[0] == counts[1], "two runs count alike")
    check(first["backend"] == backend, f"backend: {first['backend']}")
    # Each of its threads comes to three barriers, one of them in two parts.
    of_ring = next(k for k in first["kernels"] if k["name"].startswith("ring("))
    threads = of_ring["threads"]
    check(threads == 96 * (4 * 16 + 15), f"threads of ring: {threads}")
    check(of_ring["opcodes"]["barrier.cluster.arrive"] == 6 * threads ==
          of_ring["opcodes"]["barrier.cluster.wait"], f"barriers of ring: {of_ring['opcodes']}")
    profile = p.folder / "profile.json"
    p.run(made, options=[f"--profile={profile}"])
    of_ring = next(k for k in json.loads(profile.read_text())["kernels"]
                   if k["name"].startswith("ring("))["profile"]
    accesses = {n: sum(x.get(n, 0) for x in of_ring["lines"])
                for n in ("global_accesses", "shared_accesses")}
    # Three warps each: one store; a store, two for each step and a load. Parameters do not count.
    check(accesses == {"global_accesses": 3 * 79, "shared_accesses": 3 * 79 * 12},
          f"accesses of ring: {accesses}")
    return made


def test_mistakes(p, made):
    for name, (printed, fault, finding) in MISTAKES.items():
        done = p.run(made, name)
        check(done.stdout.strip() == printed and fault in done.stderr,
              f"{name}: {done.stdout}{done.stderr}")
        done = p.run(made, name, options=["--check"])
        check(finding in done.stderr, f"{name}, checked: {done.stderr}")


def test_bulk(p):
    """Copies in bulk, and what is said of those that are wrong."""
    made = program(p, "bulk")
    p.expect_fine(made)
    checked = p.run(made, options=["--check"])
    check(checked.returncode == 0 and "0 findings" in checked.stderr,
          f"bulk, checked: {checked.stdout}{checked.stderr}")
    stats = p.folder / "bulk.json"
    p.run(made, options=["--stats", str(stats)])
    kernels = json.loads(stats.read_text())["kernels"]
    opcodes = next(k["opcodes"] for k in kernels if k["name"].startswith("pipelined("))
    copies = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
    check(opcodes[copies] == 14, f"copies of pipelined: {opcodes}")
    check(not any(o.startswith("ld.v2") for o in opcodes), f"parts of copies count: {opcodes}")
    done = p.run(made, "uneven")
    check(done.stdout.strip() == "misaligned address" and
          "kernel '_Z6unevenPKi', block (0,0,0), thread (0,0,0): copies in bulk" in done.stderr,
          f"uneven: {done.stdout}{done.stderr}")
    done = p.run(made, "behind", options=["--check"])
    check("0 bytes behind the end of device memory of 256 bytes" in done.stderr and
          "cp.async.bulk.global.shared::cta.bulk_group at" in done.stderr,
          f"behind, checked: {done.stderr}")


def test_tensors(p):
    """Boxes of tensors, and what is said of those that are wrong."""
    made = program(p, "tensors")
    p.expect_fine(made)
    checked = p.run(made, options=["--check"])
    check(checked.returncode == 0 and "0 findings" in checked.stderr,
          f"tensors, checked: {checked.stdout}{checked.stderr}")
    for name, text in (("beyond", "copies a box of a tensor, reads 0x"),
                       ("none", "uses a tensor map at 0x"),
                       ("rank", "copies a box of 3 dimensions, and the tensor map has 2")):
        done = p.run(made, name)
        check(done.stdout.strip() == "an illegal memory access was encountered" and
              text in done.stderr, f"{name}: {done.stdout}{done.stderr}")
    done = p.run(made, "between")
    check(done.stdout.strip() == "misaligned address" and
          "begins 8 bytes behind the first element of a row" in done.stderr,
          f"between: {done.stdout}{done.stderr}")


def test_images(p):
    """Pixels of images (im2col), and a map of the other kind."""
    made = program(p, "images")
    p.expect_fine(made)
    done = p.run(made, "mix")
    check(done.stdout.strip() == "an illegal memory access was encountered" and
          "copies pixels (.im2col), and the tensor map is of tiles" in done.stderr,
          f"mix: {done.stdout}{done.stderr}")


def test_products(p):
    """Products of warpgroups; who is alone, and who leaves shared memory."""
    made = program(p, "wgmma")
    p.expect_fine(made)
    for name, text in (("alone", "without all 128 threads of its warpgroup"),
                       ("behind", "a descriptor leads")):
        done = p.run(made, name)
        check(done.stdout.strip() in ("unspecified launch failure",
                                      "an illegal memory access was encountered") and
              text in done.stderr, f"{name}: {done.stdout}{done.stderr}")


def main():
    p, _, backend = from_command_line(__doc__)
    test_mistakes(p, test_self_checking(p, backend))
    test_bulk(p)
    test_tensors(p)
    test_images(p)
    test_products(p)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
