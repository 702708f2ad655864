#!/usr/bin/env python3
"""Executes every command of docs/tutorial.md with an installed gpusim.  test_tutorial.py BUILD
TUTORIAL

The files that the page tells to save are those after "Save as `NAME`". Exit status 77: skipped.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"(?:Save as `(?P<name>[^`]+)`:\n\n)?```(?P<kind>\w+)(?: "
                   r"file)?\n(?P<text>.*?)^```$", re.M | re.S)
RESULT = "steps: 10753840"


def run(command, **keywords):
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False,
                          **keywords)
    if done.returncode != 0:
        sys.exit(f"{command}: status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def main():
    build, page = sys.argv[1], pathlib.Path(sys.argv[2]).read_text(encoding="utf-8")
    if not shutil.which("aarch64-linux-gnu-gcc"):
        print("skipped: aarch64-linux-gnu-gcc is not installed")
        return 77
    commands, results = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        prefix, work = pathlib.Path(folder) / "prefix", pathlib.Path(folder) / "work"
        work.mkdir()
        for component in ("runtime", "guest"):
            run(["cmake", "--install", build, "--component", component, "--prefix", str(prefix)])
        environment = {**os.environ, "PATH": f"{prefix}/bin:{os.environ['PATH']}"}
        for block in BLOCK.finditer(page):
            if block["name"]:
                (work / block["name"]).write_text(block["text"])
            elif block["kind"] == "sh":
                for line in re.sub(r"\\\n", " ", block["text"]).splitlines():
                    print("$", line, flush=True)
                    out = run(["bash", "-c", line], env=environment, cwd=work)
                    print(out[-600:])
                    commands += 1
                    results += RESULT in out
    if commands < 10 or results < 2:
        sys.exit(f"only {commands} commands, {results} with the result that the page promises")
    return 0


if __name__ == "__main__":
    sys.exit(main())
