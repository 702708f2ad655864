#!/usr/bin/env python3
"""`gpusim run --check uninitialised` on programs whose truth is known: guests.c and cpp_guest.cc.

Every program also runs without the check, and has to do the same. With --beside, memcheck of
Valgrind and MemorySanitizer of clang, where they are installed, look at the same programs."""
import json
import pathlib
import re
import shutil
import subprocess
import sys

GPUSIM, LIBRARIES, WORK = (pathlib.Path(a).resolve() for a in sys.argv[1:4])
HERE = pathlib.Path(__file__).resolve().parent
ISAS = {
    "aarch64": ("aarch64-linux-gnu-", ["-march=armv8.1-a", "-mno-outline-atomics"], LIBRARIES),
    "riscv64": ("riscv64-linux-gnu-", ["-Wl,-z,separate-code"], LIBRARIES / "riscv64"),
}
TEXT = (HERE / "guests.c").read_text()
MODES = re.findall(r"^#(?:el)?if defined\((\w+)\)", TEXT, re.M)
LINES = {}  # of each mode, those that may be reported; one of them has to be
for number, text in enumerate(TEXT.splitlines(), 1):
    for mode in re.findall(r"// (\w+)$", text):
        LINES.setdefault(mode, []).append(f"guests.c:{number}")
WITH_THREADS = ("PRIVATE", "SHARED", "TEAM")
USES = {"WRITE": "bytes", "LENGTH": "argument", "INDEX": "address", "ADDRESS": "address",
        "JUMP": "jump"}
CORES = 8
failures = []


def check(condition, message):
    if not condition:
        failures.append(message)
        print("FAILED:", message)


def build(isa, source, name, *options):
    prefix, flags, libraries = ISAS[isa]
    compiler = prefix + ("g++" if source.suffix == ".cc" else "gcc")
    if not shutil.which(compiler) or not libraries.exists():
        return None
    program = WORK / name
    subprocess.run([compiler, "-g", "-w", *flags, "-static", "-B", f"{libraries}/", *options,
                    source, "-o", program], check=True)
    return program


def run(program, *options, cores=1):
    stats = WORK / "stats.json"
    stats.unlink(missing_ok=True)
    result = subprocess.run(
        [GPUSIM, "run", program, "--cores", str(cores), "--quiet", "--stats", stats, "--per-core",
         *options], capture_output=True, text=True, timeout=120,
        errors="surrogateescape")
    result.stats = json.loads(stats.read_text()) if stats.exists() else {}
    result.found = result.stats.get("uninitialised", {}).get("found")
    return result


def checked(program, name, cores=1):
    """Runs it with and without the check: no more than the report may differ."""
    plain = run(program, "--backend", "scalar", cores=cores)
    result = run(program, "--check", "uninitialised", cores=cores)
    check(plain.returncode == 0, f"{name}: ends with {plain.returncode}: {plain.stderr}")
    check(result.stdout == plain.stdout, f"{name} prints {result.stdout}")
    guest = plain.stderr
    check(result.stderr.startswith(guest), f"{name} prints {result.stderr}, not {guest}")
    for key in ("guest_instructions", "classes", "micro_ops", "per_core"):
        check(result.stats.get(key) == plain.stats.get(key), f"{name}: other {key}")
    check(result.found is not None, f"{name}: no report: {result.stderr}")
    check(result.returncode == (66 if result.found else 0), f"{name}: {result.returncode}")
    return result


def check_truth(isa, level):
    for mode in MODES:
        threads = mode in WITH_THREADS
        name = f"{isa} {mode} {level}"
        program = build(isa, HERE / "guests.c", f"{isa}-{mode}{level}", level, f"-D{mode}",
                        *(["-fopenmp"] if threads else []))
        if not program:
            return
        result = checked(program, name, cores=CORES if threads else 1)
        if mode not in LINES:
            check(not result.found, f"{name}: {result.stderr}")
            check("no use of uninitialised values was seen" in result.stderr,
                  f"{name}: {result.stderr}")
            continue
        check(bool(result.found), f"{name}: nothing is found")
        for found in result.found:
            check(found["line"] in LINES[mode], f"{name}: {result.stderr}")
            check(found["use"] == USES.get(mode, "branch"), f"{name}: {found['use']}")
            check("loaded" in found, f"{name}: {result.stderr}")
            check(f"at {found['line']}" in result.stderr, f"{name}: {result.stderr}")


def check_details():
    program = WORK / "aarch64-HEAP-O0"
    found = run(program, "--check", "uninitialised").found[0]["loaded"]
    check(found["object"] == "a block of 160 bytes", str(found))
    check(found["block"]["offset"] == 156 and not found["block"]["freed"], str(found))
    check(any(f["function"] == "test" for f in found["block"]["allocated"]), str(found))
    found = run(WORK / "aarch64-FREED-O0", "--check", "uninitialised").found[0]["loaded"]
    check(found["object"] == "a freed block of 256 bytes" and found["block"]["freed"], str(found))
    found = run(WORK / "aarch64-LOCAL-O0", "--check", "uninitialised").found[0]["loaded"]
    check(found["object"] == "the stack of core 0" and found["bytes"] == 4, str(found))
    found = run(WORK / "aarch64-WRITE-O0", "--check", "uninitialised").found[0]
    check(found["system_call"] == "write" and found["bytes"] == 28 and
          found["first_offset"] == 21, str(found))
    # Every thread of the team has a value of its own.
    found = run(WORK / "riscv64-PRIVATE-O2", "--check", "uninitialised", cores=CORES).found
    check(sum(f["count"] for f in found) == CORES, str(found))
    # Both checks at once; a machine whose cores have memory of their own.
    both = run(WORK / "riscv64-SHARED-O2", "--check", "races,uninitialised", cores=CORES)
    check(both.found and both.stats["races"]["found"] == [] and both.returncode == 66, both.stderr)
    private = run(WORK / "aarch64-LOCAL-O0", "--check", "uninitialised", "--memory", "private",
                  cores=3)
    check(sum(f["count"] for f in private.found) == 3, private.stderr)


def check_libraries():
    for isa in ISAS:
        for level in ("-O0", "-O2"):
            program = build(isa, HERE / "cpp_guest.cc", f"{isa}-cpp{level}", level, "-std=c++17")
            if program:
                result = checked(program, f"{isa} cpp_guest {level}")
                check(not result.found, result.stderr)


def check_dynamic():
    """Functions of libc.so.6 for strings have no names of their own."""
    if not pathlib.Path("/usr/aarch64-linux-gnu/lib/libc.so.6").exists():
        return
    for mode in ("STRINGS", "HEAP"):
        program = WORK / f"aarch64-dynamic-{mode}"
        subprocess.run(["aarch64-linux-gnu-gcc", "-g", "-w", "-O2", f"-D{mode}",
                        HERE / "guests.c", "-o", program], check=True)
        result = checked(program, f"dynamic {mode}")
        check([f["line"] for f in result.found] == LINES.get(mode, []), result.stderr)


def check_refusals():
    program = WORK / "aarch64-LOCAL-O0"
    for options, says in ((("--backend", "simd"), "does not work on backend simd: use scalar"),
                          (("--checkpoint", "x"), "--check sees a run from its beginning"),
                          (("--gdb", "0"), "--gdb steps cores"), (("--chip", "x"), "run twice")):
        result = run(program, "--check", "uninitialised", *options)
        check(result.returncode in (2, 109) and says in result.stderr,
              f"{options}: {result.returncode} {result.stderr}")


def run_beside():
    """What others find in the same programs, compiled for this machine."""
    for mode in MODES:
        if mode in WITH_THREADS:
            continue
        words = [f"{mode:10}", "found" if mode in LINES else "-"]
        for level in ("-O0", "-O2"):
            program = WORK / f"native-{mode}"
            subprocess.run(["gcc", "-g", "-w", level, f"-D{mode}", HERE / "guests.c", "-o",
                            program], check=True)
            result = subprocess.run(["valgrind", "-q", "--error-exitcode=66", program],
                                    capture_output=True, text=True)
            words.append(f"memcheck {level}: {'found' if result.returncode == 66 else '-'}")
            subprocess.run(["clang", "-g", "-w", level, "-fsanitize=memory", f"-D{mode}",
                            HERE / "guests.c", "-o", program], check=True)
            result = subprocess.run([program], capture_output=True, text=True)
            words.append(f"msan {level}: {'found' if 'MemorySanitizer' in result.stderr else '-'}")
        print("  ".join(words))


WORK.mkdir(parents=True, exist_ok=True)
if "--beside" in sys.argv:
    run_beside()
    sys.exit()
for isa, level in (("aarch64", "-O0"), ("aarch64", "-O2"), ("riscv64", "-O2")):
    check_truth(isa, level)
check_details()
check_libraries()
check_dynamic()
check_refusals()
sys.exit(1 if failures else 0)
