#!/usr/bin/env python3
"""clang-tidy finds nothing in the C++ sources of a build; .clang-tidy says what it looks for.

  test_lint.py BUILD_FOLDER [--sample N] [--seed S] [--jobs J] [FILE]...

Without files it checks those that the build compiles, or N of them by chance: a file takes 3 to 60
seconds of a core, the whole tree most of an hour of two. Files are paths from the source folder.
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
import time

SKIPPED = 77
ROOT = pathlib.Path(__file__).resolve().parents[2]


def sources_of(build):
    """Tracked C++ sources that the build compiles, as paths from the source folder."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "*.cpp", "*.cc"],
                            capture_output=True, check=True).stdout
    tracked = {os.fsdecode(name) for name in listed.split(b"\0") if name}
    commands = json.loads((build / "compile_commands.json").read_text())
    compiled = {os.path.relpath(command["file"], ROOT) for command in commands}
    return sorted(tracked & compiled)


def findings_in(build, name):
    """What clang-tidy says of a file, without its remarks on how to see more."""
    result = subprocess.run(["clang-tidy", "-quiet", "-p", build, ROOT / name],
                            capture_output=True, text=True, check=False)
    if result.returncode == 0:
        return ""
    errors = [line for line in result.stderr.splitlines()
              if not re.match(r"\d+ (warnings?|errors?)|Suppressed|Use -header-filter", line)]
    return result.stdout.strip() or "\n".join(errors) or f"clang-tidy ended {result.returncode}"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("--sample", type=int, metavar="N")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    if not shutil.which("clang-tidy"):
        print("skipped: clang-tidy is not installed")
        return SKIPPED

    sources = sources_of(arguments.build)
    unknown = set(arguments.files) - set(sources)
    if unknown:
        parser.error(f"the build in {arguments.build} does not compile {', '.join(sorted(unknown))}")
    names = arguments.files or sources
    if arguments.sample and arguments.sample < len(names):
        names = random.Random(arguments.seed).sample(names, arguments.sample)
        print(f"{arguments.sample} of {len(sources)} files, --seed {arguments.seed}", flush=True)

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        found = pool.map(lambda name: findings_in(arguments.build, name), names)
        for number, (name, findings) in enumerate(zip(names, found), 1):
            print(f"[{number}/{len(names)}] {name}", flush=True)
            if findings:
                failed += 1
                print(findings, flush=True)
    if failed:
        print(f"{failed} of {len(names)} files have findings; mend them, or say in .clang-tidy why "
              "a check is not ours")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
