#!/usr/bin/env python3
"""The micro-benchmarks' kernels as ptxas assembles them: what is measured must be in the machine
code as often as in the PTX, whatever -O3 does.

usage: test_ptxas.py GPUSIM FOLDER
Exit status 77: there is no ptxas. GPUSIM_LONG=1 looks into the machine code of all architectures.

NVIDIA's disassembler is not needed: an instruction is 16 bytes since Volta, and its low 12 bits say
what it is. A kernel that is unrolled twice as far, less the kernel itself, is what the unrolled
part became; the same of the overhead kernels is subtracted.
"""
import collections
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

ARCHITECTURES = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100"]
NOP, BRANCH_TO_ITSELF = 0x918, 0x947
failures = []


def check(condition, text):
    if not condition:
        failures.append(text)
        print("FAILED:", text)


def find_ptxas():
    for place in (os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"):
        path = os.path.join(place, "bin", "ptxas")
        if place and os.access(path, os.X_OK):
            return path
    return shutil.which("ptxas")


def emit(gpusim, folder, unroll):
    """{(instruction, is_overhead): PTX}"""
    subprocess.run([gpusim, "power", "microbench", "--emit", folder, "--unroll", str(unroll)],
                   check=True, stdout=subprocess.DEVNULL)
    kernels = {}
    for name in sorted(os.listdir(folder)):
        text = open(os.path.join(folder, name)).read()
        base = name[:-len(".ptx")]
        is_overhead = base.endswith(".overhead")
        kernels[base[:-len(".overhead")] if is_overhead else base, is_overhead] = text
    return kernels


def together(kernels):
    """One module with all kernels: starting ptxas costs more than assembling one."""
    head, body = "", ""
    for i, text in enumerate(kernels):
        at = text.index(".visible .entry")
        head = text[:at]
        body += text[at:].replace("gpusim_bench", f"k{i}_", 1)
    return head + body


def machine_code(cubin):
    """{kernel's number: Counter of opcodes}"""
    data = open(cubin, "rb").read()
    table, = struct.unpack_from("<Q", data, 40)
    count, names = struct.unpack_from("<HH", data, 60)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + 64 * i) for i in range(count)]
    code = {}
    for s in sections:
        start = sections[names][4] + s[0]
        match = re.fullmatch(r"\.text\.k(\d+)_", data[start:data.index(b"\0", start)].decode())
        if match:
            words = struct.iter_unpack("<QQ", data[s[4]:s[4] + s[5]])
            code[int(match[1])] = collections.Counter(w[0] & 0xFFF for w in words)
    return code


def assemble(ptxas, folder, texts, arch, level):
    source, cubin = os.path.join(folder, "all.ptx"), os.path.join(folder, "all.cubin")
    with open(source, "w") as f:
        f.write(together(texts))
    run = subprocess.run([ptxas, f"-arch={arch}", f"-O{level}", "-o", cubin, source],
                         capture_output=True, text=True)
    check(run.returncode == 0, f"ptxas -arch={arch} -O{level}: {run.stderr[:500]}")
    return machine_code(cubin) if run.returncode == 0 else {}


def supported(ptxas):
    text = subprocess.run([ptxas, "--help"], capture_output=True, text=True).stdout
    return [a for a in ARCHITECTURES if f"'{a}'" in text or re.search(rf"\b{a}\b", text)]


# What -O3 makes of one PTX instruction at least, where that is more than one.
AT_LEAST = {"div.s32": 10, "div.u32": 10, "rem.s32": 10, "rem.u32": 10, "div.f32": 5, "div.f64": 10,
            "sqrt.rn.f32": 5, "rcp.rn.f32": 5, "sqrt.rn.f64": 10, "rcp.rn.f64": 8,
            "sin.approx.f32": 2, "cos.approx.f32": 2, "isqrt.u32": 3}
# Opcodes that must be among it, once for each PTX instruction, by the low 9 bits.
MUST_HAVE = {"sin.approx.f32": 0x108, "sqrt.approx.f32": 0x108, "ex2.approx.f32": 0x108,  # MUFU
             "popc.b32": 0x109, "fma.f32": 0x023, "fma.f64": 0x02b, "add.f64": 0x029,
             "ld.shared": 0x184, "st.shared": 0x188, "ld.global.dram": 0x181, "bra": 0x147}


def look_into(kernels, doubled, ptxas, folder, arch, level, unrolled):
    keys = sorted(kernels)
    code = assemble(ptxas, folder, [kernels[k] for k in keys] + [doubled[k] for k in keys], arch,
                    level)
    if not code:
        return
    check(len(code) == 2 * len(keys), f"{arch} -O{level}: {len(code)} kernels of {2 * len(keys)}")

    def added(instruction, is_overhead):
        i = keys.index((instruction, is_overhead))
        difference = collections.Counter(code[len(keys) + i])
        difference.subtract(code[i])
        return difference

    for instruction in sorted({k[0] for k in keys}):
        net = added(instruction, False)
        net.subtract(added(instruction, True))
        net.pop(NOP, None)
        each = sum(net.values()) / unrolled
        least = AT_LEAST.get(instruction, 1)
        # Moves that come and go at the loop's ends are no instructions of ours.
        slack = 2 / unrolled
        check(each >= least - slack,
              f"{instruction} {arch} -O{level}: {each:.2f} machine instructions for each, "
              f"at least {least} expected: {dict(net)}")
        if instruction in MUST_HAVE and level == 3:
            has = sum(n for op, n in net.items() if op & 0x1FF == MUST_HAVE[instruction])
            check(has == unrolled, f"{instruction} {arch}: {has} of opcode "
                                   f"{MUST_HAVE[instruction]:#x} in place of {unrolled}")


def main():
    gpusim, folder = sys.argv[1:3]
    ptxas = find_ptxas()
    if ptxas is None:
        print("skipped: there is no ptxas in CUDA_HOME, /usr/local/cuda or PATH")
        return 77
    is_long = os.environ.get("GPUSIM_LONG", "") not in ("", "0")
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        unrolled = 4
        kernels = emit(gpusim, os.path.join(place, "once"), unrolled)
        doubled = emit(gpusim, os.path.join(place, "twice"), 2 * unrolled)
        archs = supported(ptxas)
        check("sm_90" in archs, f"ptxas knows {archs}")
        for arch in archs:
            if is_long or arch == "sm_90":
                for level in (3, 0):
                    look_into(kernels, doubled, ptxas, place, arch, level, unrolled)
            else:
                assemble(ptxas, place, [kernels[k] for k in sorted(kernels)], arch, 3)
        print(f"{len(kernels) // 2} instructions on {', '.join(archs)}: {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
