#!/usr/bin/env python3
"""`gpusim run --check races` on programs whose truth is known: guests.c, and what libgpusim's own
locks and barriers do."""
import json
import pathlib
import shutil
import subprocess
import sys

GPUSIM, LIBRARIES, WORK = (pathlib.Path(a).resolve() for a in sys.argv[1:4])
HERE = pathlib.Path(__file__).resolve().parent
ISAS = {
    "aarch64": ("aarch64-linux-gnu-gcc", ["-march=armv8.1-a", "-mno-outline-atomics"], LIBRARIES),
    "riscv64": ("riscv64-linux-gnu-gcc", ["-Wl,-z,separate-code"], LIBRARIES / "riscv64"),
}
# What each reports: the lines of guests.c, by what stands in them; None: nothing.
TRUTH = {
    "RACY": "total += (uint64_t)me;\n#elif MODE == ATOMIC",
    "ATOMIC": None,
    "MUTEX": None,
    "REDUCTION": None,
    "BARRIER": None,
    "JOIN": None,
    "HALF": "total = 1;\n    else\n      __atomic",
    "NEIGHBOURS": None,
    "COPY": "total = cells[1];",
    "PIPELINE": None,
}
TEXT = (HERE / "guests.c").read_text()
failures = []


def check(condition, message):
    if not condition:
        failures.append(message)
        print("FAILED:", message)


def run(program, *options, cores=64):
    stats = WORK / "stats.json"
    stats.unlink(missing_ok=True)
    result = subprocess.run(
        [GPUSIM, "run", program, "--cores", str(cores), "--quiet", "--check", "races", "--stats",
         stats, *options], capture_output=True, text=True, timeout=120)
    result.races = json.loads(stats.read_text())["races"] if stats.exists() else None
    return result


def line_of(what):
    return "guests.c:" + str(TEXT[:TEXT.index(what)].count("\n") + 1)


def check_truth(isa):
    compiler, flags, libraries = ISAS[isa]
    if not shutil.which(compiler) or not libraries.exists():
        return
    for mode, where in TRUTH.items():
        threads = "-pthread" if mode in ("MUTEX", "JOIN") else "-fopenmp"
        program = WORK / f"{isa}-{mode}"
        subprocess.run([compiler, "-O1", "-g", *flags, "-static", "-B", f"{libraries}/", threads,
                        f"-DMODE={mode}", HERE / "guests.c", "-o", program], check=True)
        found = {}
        for backend in ("scalar", "simd"):
            name = f"{isa} {mode} {backend}"
            result = run(program, "--backend", backend)
            check(result.returncode == (66 if where else 0), f"{name}: {result.returncode}")
            again = run(program, "--backend", backend)
            check(result.races == again.races, f"{name}: another report from the same run")
            races = result.races["found"]
            found[backend] = {(r["object"], *sorted((r["first"]["line"], r["second"]["line"])))
                              for r in races}
            check(bool(races) == bool(where), f"{name}: {result.stderr}")
            if where:
                check(all(line_of(where) in (r["first"]["line"], r["second"]["line"])
                          for r in races), f"{name}: {result.stderr}")
                check(line_of(where) in result.stderr, f"{name} prints {result.stderr}")
            else:
                check("no data races were seen" in result.stderr, f"{name}: {result.stderr}")
        check(found["scalar"] == found["simd"], f"{isa} {mode}: {found}")


def check_details():
    program = WORK / "aarch64-RACY"
    result = run(program, cores=256)
    for race in result.races["found"]:
        check(race["object"] == "total" and race["bytes"] == 8, str(race))
        check(race["first"]["core"] != race["second"]["core"], str(race))
        check("main" in race["first"]["function"], str(race))
    # A program's own status is not hidden.
    compiler, flags, libraries = ISAS["aarch64"]
    own = WORK / "own_status"
    source = WORK / "own_status.c"
    source.write_text("int x;\nint main(void) {\n#pragma omp parallel\n  ++x;\n  return 3;\n}\n")
    subprocess.run([compiler, "-O1", *flags, "-static", "-B", f"{libraries}/", "-fopenmp", source,
                    "-o", own], check=True)
    result = run(own)
    check(result.returncode == 3 and result.races["found"], f"{result.returncode}")
    check("compile the program with -g" in result.stderr, result.stderr)


def check_refusals():
    program = WORK / "aarch64-RACY"
    for options, says in ((("--memory", "private"), "not with --memory private"),
                          (("--checkpoint", "x"), "--check sees a run from its beginning"),
                          (("--gdb", "0"), "--gdb steps cores"),
                          (("--chip", "x"), "run twice")):
        result = run(program, *options)
        check(result.returncode in (2, 109) and says in result.stderr,
              f"{options}: {result.returncode} {result.stderr}")
    result = subprocess.run([GPUSIM, "run", program, "--check", "leaks"], capture_output=True,
                            text=True, timeout=120)
    check(result.returncode == 2 and "--check leaks: of programs, races and" in result.stderr,
          result.stderr)
    result = run(program, cores=5000)
    check(result.returncode == 2 and "up to 4096 cores" in result.stderr, result.stderr)


WORK.mkdir(parents=True, exist_ok=True)
for isa in ISAS:
    check_truth(isa)
check_details()
check_refusals()
sys.exit(1 if failures else 0)
