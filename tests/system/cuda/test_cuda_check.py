#!/usr/bin/env python3
"""gpusim cuda --check and --profile: programs with one mistake each, and programs without.

usage: test_cuda_check.py GPUSIM FOLDER BACKEND     Exit status 77: there is no nvcc.
"""
import json
import pathlib
import re
import sys

from cuda_programs import SOURCES, check, failures, from_command_line

LINES = {line.split("FAULT ")[1].strip(): number
         for number, line in enumerate((SOURCES / "faulty.cu").read_text().splitlines(), 1)
         if "// FAULT " in line}

# case: kind, the marked line, the first thread, words of the report
BEHIND = "0 bytes behind the end of "
OF_KERNELS = {
    "device_bounds": ("out of bounds", "store", [64, 0, 0],
                      ["kernel 'store(int*, int)', block (0,0,0), thread (64,0,0) writes 4 bytes",
                       BEHIND + "device memory of 256 bytes at 0x",
                       "(allocated by cudaMalloc number 2)"]),
    "pinned_bounds": ("out of bounds", "store", [64, 0, 0],
                      [BEHIND + "host memory", "allocated by cudaHostAlloc number 1"]),
    "managed_bounds": ("out of bounds", "store", [64, 0, 0],
                       [BEHIND + "managed memory", "cudaMallocManaged number 1"]),
    "registered_bounds": ("out of bounds", "store", [64, 0, 0],
                          [BEHIND + "host memory", "registered by cudaHostRegister number 1"]),
    "global_bounds": ("out of bounds", "store_table", [16, 0, 0],
                      [BEHIND + "variable 'table' of 64 bytes"]),
    "page_bounds": ("out of bounds", "store", [0, 0, 0],
                    [BEHIND + "device memory of 8192 bytes at 0x"]),
    "before": ("out of bounds", "store", [0, 0, 0], ["4 bytes before device memory of 256 bytes"]),
    "use_after_free": ("use after free", "store", [0, 0, 0],
                       ["in device memory of 256 bytes", "number 1, freed by cudaFree number 1)"]),
    "large_after_free": ("use after free", "store", [0, 0, 0],
                         ["of 4194304 bytes", "number 1, freed by cudaFree number 1), which was"]),
    "misaligned": ("misaligned", "bytes", [5, 0, 0], ["multiple of 4"]),
    "uninitialised": ("uninitialised", "add", [63, 0, 0],
                      ["reads 4 bytes", "nothing has written, in device memory of 256 bytes",
                       "cudaMalloc number 1"]),
    "uninitialised_copy": ("uninitialised", "add", [10, 0, 0], ["cudaMalloc number 2"]),
    "race": ("race", "sum", None, ["part+0x", "writes", "reads"]),
    "barrier": ("divergent barrier", "leave_early", [48, 0, 0], ["48 threads of the block"]),
    "deadlock": ("deadlock", "wait_crosswise", None, ["32 threads wait"]),
}
FREED = "(allocated by cudaMalloc number 1, freed by cudaFree number 1)"
OF_CALLS = {
    "double_free": ("double free", ["cudaFree number 2 of 0x", "memory of 256 bytes", FREED]),
    "invalid_free": ("invalid free", ["that is within device memory of 256 bytes"]),
    "wrong_free": ("invalid free", ["cudaFreeHost number 1", "not host memory"]),
    "stray_free": ("invalid free", ["nothing was allocated there"]),
    "copy_bounds": ("out of bounds", ["cudaMemcpy writes 260 bytes", "only 256 bytes are there"]),
    "set_bounds": ("out of bounds", ["cudaMemset writes 257 bytes", "cudaMalloc number 1"]),
    "copy_after_free": ("use after free", ["cudaMemcpy reads 256 bytes", "freed by cudaFree"]),
}


class Checked:
    def __init__(self, p):
        self.p, self.stats = p, p.folder / "stats.json"
        self.program = p.link("faulty", [p.object_of("faulty", "-lineinfo")])

    def run(self, *words, options=("--check",), program=None):
        self.stats.unlink(missing_ok=True)
        done = self.p.run(program or self.program, *words,
                          options=[*options, "--stats", str(self.stats)])
        return done, json.loads(self.stats.read_text()) if self.stats.exists() else {}


def test_mistakes_of_kernels(c):
    for name, (kind, line, thread, words) in OF_KERNELS.items():
        done, stats = c.run(name)
        found = stats["findings"]
        check([f["kind"] for f in found] == [kind], f"{name}: {found}\n{done.stderr}")
        check((done.returncode, stats["exit_status"]) == (66, 66), f"{name}: {done.returncode}")
        if not found:
            continue
        first = found[0]
        check(first["launch"] == 1 and f"gpusim cuda: launch 1: {kind}" in done.stderr,
              f"{name}: launch\n{done.stderr}")
        check(thread in (None, first["thread"]), f"{name}: thread {first['thread']}")
        for word in words:
            check(word in first["text"], f"{name}: no '{word}' in\n{first['text']}")
        check(first["text"] in done.stderr, f"{name}: not said\n{done.stderr}")
        check(f"faulty.cu:{LINES[line]}" in first["text"], f"{name}: line\n{first['text']}")
        check(f"--check: 1 finding: 1 {kind}\n" in done.stderr, f"{name}: sum\n{done.stderr}")


def test_a_fault_is_told_once(c):
    """The page behind the memory may not be written; where, whose and which line is said before."""
    done, stats = c.run("page_bounds")
    check(done.stderr.count("behind the end") == 1 and done.stderr.count("faulty.cu:") == 1,
          f"told twice:\n{done.stderr}")
    check("gpusim cuda: kernel '_Z5storePii' ended there with a fault: block (8,0,0), "
          f"thread (0,0,0), address {stats['findings'][0]['address']:#x}\n" in done.stderr,
          f"no fault:\n{done.stderr}")
    done, _ = c.run("page_bounds", options=["--check=races"])
    check("behind the end" in done.stderr and "ended there" not in done.stderr,
          f"only as a fault:\n{done.stderr}")


def test_mistakes_of_calls(c):
    for name, (kind, words) in OF_CALLS.items():
        done, stats = c.run(name)
        found = stats["findings"]
        check([f["kind"] for f in found] == [kind], f"{name}: {found}\n{done.stderr}")
        check(done.returncode == 66, f"{name}: status {done.returncode}")
        for word in words:
            check(word in done.stderr, f"{name}: no '{word}' in\n{done.stderr}")


def test_launches_are_counted(c):
    done, stats = c.run("repeated")
    found = stats["findings"]
    check(len(found) == 1 and (found[0]["launch"], found[0]["launches"], found[0]["count"]) ==
          (2, 2, 3), f"repeated: {found}")
    check(done.stderr.count("out of bounds: kernel") == 1, f"repeated:\n{done.stderr}")


def test_what_is_not_freed(c):
    done, stats = c.run("leak")
    check((done.returncode, stats["findings"]) == (0, []), f"leak: {done}")
    check([leak["size_bytes"] for leak in stats["leaks"]] == [256], f"leak: {stats['leaks']}")
    check("1 allocation was not freed" in done.stderr and
          re.search(r"device memory of 256 bytes at 0x\w+ \(allocated by cudaMalloc number 1\)",
                    done.stderr), f"leak:\n{done.stderr}")


def test_without_mistakes(c):
    done, stats = c.run("clean")
    check(done.returncode == 0 and done.stdout == "ended\n", f"clean: {done}")
    check((stats["findings"], stats["leaks"]) == ([], []), f"clean: {done.stderr}")
    check("--check: 0 findings\n" in done.stderr, f"clean:\n{done.stderr}")
    done, _ = c.run("clean", options=["--check", "--quiet"])
    check(done.stderr == "", f"clean, quiet:\n{done.stderr}")
    # Programs that check themselves. They make some calls that CUDA refuses.
    for name in ("basic", "calls", "matrices", "streams", "api"):
        program = c.p.link(name, [c.p.object_of(name)])
        done, stats = c.run(program=program)
        wrong = [f["text"] for f in stats["findings"] if f["launch"] != 0]
        check("all fine" in done.stdout and not wrong, f"{name}: {wrong}\n{done.stderr}")


def test_choice_and_status(c):
    done, stats = c.run("race", options=["--check=memory,uninitialised"])
    check((done.returncode, stats["findings"]) == (0, []), f"choice: {done}")
    done, stats = c.run("race", options=[])
    check(done.returncode == 0 and "findings" not in stats, f"no check: {done}")
    done, _ = c.run("race", options=["--check=wishes"])
    check(done.returncode == 2 and "memory, races" in done.stderr, f"wishes: {done}")
    done, _ = c.run("own_status")
    check(done.returncode == 3 and "out of bounds" in done.stderr, f"own status: {done}")
    done, _ = c.run("ends_at_once")
    check(done.returncode == 66 and "out of bounds" in done.stderr, f"ends at once: {done}")
    done, _ = c.run("race", options=["--check", "--profile"])
    check(done.returncode == 2 and "run twice" in done.stderr, f"both: {done}")
    plain = c.p.link("faulty-plain", [c.p.object_of("faulty")])
    done, _ = c.run("device_bounds", program=plain)
    check("-lineinfo" in done.stderr and "unit 1:" in done.stderr, f"no lines:\n{done.stderr}")


def test_profile(c):
    one, _ = c.run("leak", options=[])
    check(one.returncode == 0, f"plain: {one}")
    path = c.p.folder / "profile.json"
    done, stats = c.run("repeated", options=[f"--profile={path}"])
    kernels = json.loads(path.read_text())["kernels"]
    check(done.returncode == 0 and len(kernels) == 1, f"profile: {done}")
    kernel, counted = kernels[0], stats["kernels"][0]
    check((kernel["name"], kernel["launches"]) == ("store(int*, int)", 3), f"profile: {kernel}")
    profile = kernel["profile"]
    check(profile == counted["profile"], "profile: --stats has another")
    check(profile["instructions"] == counted["instructions"], f"profile: {profile}")
    lines = {pathlib.Path(x["line"]).name: x for x in profile["lines"]}
    store = lines[f"faulty.cu:{LINES['store']}"]
    # Of the launches for 64, 65 and 66 values, the warps that store: 2, 3 and 3.
    check((store["global_accesses"], store["sectors"]) == (8, 3 * 8 + 2), f"profile: {store}")
    done, _ = c.run("repeated", options=["--profile"])
    check("store(int*, int): 3 launches\n" in done.stderr and
          f"faulty.cu:{LINES['store']}" in done.stderr, f"profile:\n{done.stderr}")


def main():
    c = Checked(from_command_line(__doc__)[0])
    test_mistakes_of_kernels(c)
    test_a_fault_is_told_once(c)
    test_mistakes_of_calls(c)
    test_launches_are_counted(c)
    test_what_is_not_freed(c)
    test_without_mistakes(c)
    test_choice_and_status(c)
    test_profile(c)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
