#!/usr/bin/env python3
"""Runs test suites and notes in executed.tsv which A64 rows each of them has executed."""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent

# Suite: its tests, as ctest -R takes them.
SUITES = {
    "oracle": "^isa\\.a64\\.oracle\\.",
    "programs": "^differential\\.programs",
    "torture": "^differential\\.torture\\.O2$",
    "neon": "^differential\\.gcc_dg\\.neon(-v8\\.6)?$",
    "vect": "^differential\\.gcc_dg\\.vect$",
    "testfloat": "^differential\\.testfloat",
    "csmith": "^differential\\.csmith",
    "real": "^(differential|system)\\.real",
}

HEADER = "# Row of translator/a64/rows, tab, suites that execute it. Written by collect.py.\n"


def read(path):
    executed = {}
    if path.exists():
        for line in path.read_text().splitlines():
            if line and not line.startswith("#"):
                row, _, suites = line.partition("\t")
                executed[row] = set(suites.split())
    return executed


def rows_in(coverage):
    lines = set(coverage.read_text().splitlines())
    return {line.split()[1] for line in lines if line.startswith("aarch64 ")}


def rows_of(build, tests, jobs):
    """The rows that the suite executes; None when it fails or has no tests."""
    with tempfile.TemporaryDirectory(prefix="gpusim-coverage-") as folder:
        coverage = pathlib.Path(folder) / "rows"
        done = subprocess.run(
            ["ctest", "--test-dir", str(build), "-j", str(jobs), "--no-tests=error", "-R", tests],
            env={**os.environ, "GPUSIM_ISA_COVERAGE": str(coverage)}, stdout=subprocess.PIPE,
            text=True)
        if done.returncode != 0:
            print(done.stdout[-2000:], file=sys.stderr)
            return None
        if not coverage.exists():
            print("the tests passed, but recorded nothing", file=sys.stderr)
            return None
        return rows_in(coverage)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--build", type=pathlib.Path, help="the build folder whose tests to run")
    source.add_argument("--rows", type=pathlib.Path,
                        help="a file that GPUSIM_ISA_COVERAGE named when the one suite was run")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=", ".join(SUITES))
    options = parser.parse_args()
    if options.rows and len(options.suites) != 1:
        parser.error("--rows goes with one suite")
    unknown = set(options.suites) - set(SUITES)
    if unknown:
        parser.error(f"no suite {', '.join(sorted(unknown))}")

    path = HERE / "executed.tsv"
    executed = read(path)
    failed = []
    for suite in options.suites or SUITES:
        rows = (rows_in(options.rows) if options.rows else
                rows_of(options.build, SUITES[suite], options.jobs))
        if rows is None:
            failed.append(suite)
            continue
        print(f"{suite}: {len(rows)} rows", flush=True)
        for row in rows | set(executed):
            suites = executed.setdefault(row, set())
            suites.add(suite) if row in rows else suites.discard(suite)
    lines = [f"{row}\t{' '.join(sorted(suites))}\n"
             for row, suites in sorted(executed.items()) if suites]
    beside = path.with_suffix(".new")
    beside.write_text(HEADER + "".join(lines))
    beside.rename(path)
    if failed:
        sys.exit(f"not collected: {', '.join(failed)}")


if __name__ == "__main__":
    main()
