#!/usr/bin/env python3
"""clang-tidy, as .clang-tidy says, over C++ sources that a build folder knows.

  run_lint.py BUILD_FOLDER --all | --sample COUNT | FILE...

A sample draws other files each time; GPUSIM_SEED repeats a draw. FILE is a path in the project, or,
in the build folder, one of the bundles in which CMake compiles small files.
Status 1 if there is a finding, 77 (skipped) without Debian 12's clang-tidy.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLANG_TIDY = 14  # Debian 12's; others know other checks
FOR_CLANG = ["-w"]  # warnings are the compiler's business, which is GCC
NOT_FOR_CLANG = {"-fno-crossjumping", "-fno-extern-tls-init", "-fno-gnu-unique",
                 "-fno-tree-tail-merge"}

# What clang 14 does not parse: _Float16 on any x86-64; subranges of GCC's library.
NOT_BY_CLANG = {"tests/isa/ptx/matrix_forms_test.cpp", "tests/isa/ptx/matrix_test.cpp",
                "tests/isa/ptx/rows_float_test.cpp", "tests/isa/ptx/rows_narrow_test.cpp",
                "tests/isa/ptx/rows_packed_test.cpp", "tests/isa/ptx/warpgroup_test.cpp",
                "host/offload/lock_guard.cpp"}


def compilations(build):
    """What the build's list of compilations has, without what clang does not know."""
    commands = json.loads((build / "compile_commands.json").read_text())
    for command in commands:
        words = command["command"].split(" ")
        command["command"] = " ".join(word for word in words if word not in NOT_FOR_CLANG)
    return commands


def units(build, commands):
    """{name: file} of what the build compiles of the project: sources, and bundles of them."""
    found = {}
    for command in commands:
        path = pathlib.Path(command["directory"], command["file"]).resolve()
        if path.is_relative_to(build):
            if path.parent.name == "Unity":
                found[str(path.relative_to(build))] = path
        elif path.suffix == ".cpp" and path.is_relative_to(ROOT):
            found[str(path.relative_to(ROOT))] = path
    return {name: path for name, path in found.items() if name not in NOT_BY_CLANG}


def lint(folder, path):
    """What clang-tidy printed of a file, "" if it found nothing. `folder`: of the compilations."""
    done = subprocess.run(
        ["clang-tidy", "--quiet", "-p", folder, *(f"--extra-arg={flag}" for flag in FOR_CLANG),
         path], cwd=ROOT, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--sample", type=int, metavar="COUNT")
    arguments = parser.parse_args()
    build = arguments.build.resolve()

    if shutil.which("clang-tidy") is None:
        sys.exit("clang-tidy is not installed: run scripts/setup")
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, text=True,
                             check=True).stdout
    if f"version {CLANG_TIDY}." not in version:
        found = re.search(r"version \S+", version)
        print(f"skipped: clang-tidy {found and found[0]}; the sources follow {CLANG_TIDY}")
        return 77

    commands = compilations(build)
    known = units(build, commands)
    if unknown := set(arguments.files) - set(known):
        sys.exit(f"{build} compiles no {', '.join(sorted(unknown))}; --all prints what it does")
    names = sorted(known) if arguments.all else arguments.files
    if arguments.sample:
        seed = int(os.environ.get("GPUSIM_SEED") or random.SystemRandom().getrandbits(32))
        print(f"replay: GPUSIM_SEED={seed}", flush=True)
        names = random.Random(seed).sample(sorted(known), min(arguments.sample, len(known)))
    if not names:
        sys.exit("no files to check: give --all, --sample COUNT or FILE...")

    faulty = 0
    with (tempfile.TemporaryDirectory() as folder,
          concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool):
        (pathlib.Path(folder) / "compile_commands.json").write_text(json.dumps(commands))
        for number, (name, text) in enumerate(
                zip(names, pool.map(lambda name: lint(folder, known[name]), names)), 1):
            print(f"{number}/{len(names)} {name}{': ' if text else ''}{text}", flush=True)
            faulty += text != ""
    print(f"{len(names)} files, {faulty} with findings")
    return 1 if faulty else 0


if __name__ == "__main__":
    sys.exit(main())
