#!/usr/bin/env python3
"""How programs are taken over, and what the API returns: with a stand-in for the engine.

usage: test_takeover.py LIBRARY DRIVER_LIBRARY FOLDER
Exit status 77: there is no nvcc.
"""
import json
import os
import shutil
import shutil
import subprocess
import sys

from cuda_programs import NO_PTX, Programs, check, failures


def full_timeline(p, environment):
    """Events beyond the limit: begun lines are ended, nothing else comes."""
    folder = p.folder / "events"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    done = subprocess.run([p.folder / "streams-static"], capture_output=True, text=True,
                          timeout=120, check=False,
                          env={**environment, "GPUSIM_CUDA_FOLDER": str(folder),
                               "GPUSIM_CUDA_TIMELINE": "5000"})
    check("all fine" in done.stdout and done.stderr.count("more than 5000 bytes of events") == 1,
          f"full: {done}")
    for path in folder.glob("*.events"):
        lines = path.read_bytes().rstrip(b"\0").decode().splitlines()
        full = lines.index('{"full":true}')
        check(5000 < len("\n".join(lines)) < 8000, f"full: {len(lines)} lines")
        check(all("end" in json.loads(line) for line in lines[full + 1:]), f"full: {lines[full:]}")
    check(len(list(folder.glob("*.events"))) == 1, "full: no file")


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    counts = os.path.join(sys.argv[3], "counts")
    shutil.rmtree(counts, ignore_errors=True)  # of a run before this one
    os.makedirs(counts)
    environment = {**os.environ, "LD_PRELOAD": f"{sys.argv[1]}:{sys.argv[2]}",
                   "GPUSIM_CUDA_FOLDER": counts, "GPUSIM_CUDA_LIST_LAUNCHES": "1"}

    def run(program, *arguments):
        return subprocess.run([program, *arguments], env=environment, capture_output=True,
                              text=True, timeout=120, check=False)

    p = Programs(sys.argv[3], run)
    for name in ("api", "streams"):
        made = p.object_of(name)
        for runtime in ("static", "shared"):
            program = p.link(f"{name}-{runtime}", [made], "-cudart", runtime)
            done = p.expect_fine(program)
            if name == "api":
                check(done.stderr.count("cudaImportExternalMemory is not supported") == 1,
                      f"api: the function that is lacking is not named:\n{done.stderr}")
            check(f"launch 1: {'fill(int*, int)' if name == 'api' else 'add_to'}" in done.stderr,
                  f"{name}: no line for its first launch:\n{done.stderr}")
    for entry in os.scandir(counts):
        with open(entry.path, encoding="utf-8") as file:
            check(json.load(file)["launches"] > 0, f"{entry.path}: no launches")
    check(len(os.listdir(counts)) >= 4, "each program leaves its counts")
    driver = p.driver()
    if driver is not None:
        p.expect_fine(*driver)
    objects = [p.object_of(name, "-rdc=true") for name in ("separable_main", "separable_other")]
    done = p.run(p.link("separable", objects, "-rdc=true"))
    check("launch 1: use(int*)" in done.stderr, f"separable: {done.stderr}")

    done = p.run(p.stripped(p.folder / "api-static"))
    check(done.returncode == 2 and "-cudart shared" in done.stderr, f"stripped: {done}")
    of_nvidia = p.folder / "libcublas.so.13"
    shutil.copy(p.folder / "api-static-stripped", of_nvidia)
    done = p.run(of_nvidia)
    check(done.returncode == 2 and "is a library of NVIDIA's" in done.stderr, f"cuBLAS: {done}")
    p.expect_fine(p.stripped(p.folder / "api-shared"))
    done = p.run(p.link("code", [p.object_of("separable_other", base=NO_PTX),
                                 p.object_of("streams", base=NO_PTX)]))
    check(done.returncode == 1 and "machine code only (sm_80)" in done.stderr and
          "code=compute_80" in done.stderr, f"without PTX: {done}")
    full_timeline(p, environment)
    # Programs without CUDA notice nothing.
    done = p.run("sh", "-c", "echo out; exit 7")
    check((done.returncode, done.stdout, done.stderr) == (7, "out\n", ""), f"sh: {done}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
