#!/usr/bin/env python3
"""Textures and surfaces under `gpusim cuda`.  usage: test_cuda_textures.py GPUSIM FOLDER BACKEND

Random fetches against texture_model.py; programs that check their own results. Exit status 77:
there is no nvcc.
"""
import collections
import os
import random
import struct
import sys

import texture_model as model
from cuda_programs import check, failures, from_command_line


def ulps_apart(a, b):
    """Of two floats as bits."""
    ordered = [-(w & 0x7fffffff) if w >> 31 else w for w in (a, b)]
    return abs(ordered[0] - ordered[1])


def differs(t, wanted, found):
    # The sums of averages are rounded once more where they are not exact in double; sRGB by pow.
    exact = not t.is_float() or (t.kind == model.FLOAT and not (t.filter or t.mip_filter))
    return any(w != f and (exact or ulps_apart(w, f) > 1) for w, f in zip(wanted, found))


def test_fetches(p, seed):
    """Of all kinds."""
    print("replay: GPUSIM_SEED =", seed)
    cases = model.random_cases(seed, per_op=8, places=40)
    asked, got = p.folder / "cases", p.folder / "texels.out"
    model.write_cases(asked, cases)
    p.expect_fine(p.link("texels", [p.object_of("texels")]), asked, got)
    words = struct.unpack(f"<{got.stat().st_size // 4}I", got.read_bytes())
    check(len(words) == 4 * sum(len(places) for _, places in cases), "the number of results")
    at, wrong, not_zero = 0, collections.Counter(), 0
    for t, places in cases:
        for place in places:
            wanted, found = t.fetch(place), list(words[at:at + 4])
            at += 4
            not_zero += any(wanted)
            if differs(t, wanted, found):
                if not wrong[t.op]:
                    shown = {k: v for k, v in vars(t).items() if k != "texels"}
                    print(f"{shown}\n at {place}:\n {list(map(hex, wanted))} wanted, "
                          f"{list(map(hex, found))} found")
                wrong[t.op] += 1
    check(not wrong, f"fetches that differ, by operation: {dict(wrong)}")
    check(not_zero > at // 16, "most fetches should give something")
    print(f"{at // 4} fetches of {len(cases)} textures")


def test_programs(p):
    """Copies, surfaces, objects of both APIs, refusals."""
    if p.stubs() is None:
        print("without programs of the driver API: the toolkit has no stub of libcuda.so")
        return
    made = p.object_of("textures")
    for runtime in ("static", "shared"):
        p.expect_fine(p.link(f"textures-{runtime}", [made], "-cudart", runtime,
                             f"-L{p.stubs()}", "-lcuda"))


FAULTS = {
    "destroyed": ("use after free", "was the handle of an object (made by cudaCreateTextureObject "
                  "number 1, destroyed by cudaDestroyTextureObject number 1)"),
    "freed": ("use after free", "whose memory was freed by cudaFree number 1"),
    "array": ("use after free", "whose memory was freed by cudaFreeArray number 1"),
    "pointer": ("out of bounds", "is the handle of no texture or surface"),
    "null": ("out of bounds", "0x0 is the handle of no texture or surface"),
    "swapped": ("out of bounds", "is a surface, not a texture (made by cudaCreateSurfaceObject "
                "number 1)"),
    "outside": ("out of bounds", "outside of a surface of 16 x 2 x 1 elements of 4 bytes (made by "
                "cudaCreateSurfaceObject number 1)"),
}


def test_faults(p):
    """Named, with the object, thread and line."""
    program = p.link("textures_faulty", [p.object_of("textures_faulty", "-lineinfo")])
    for what, (kind, text) in FAULTS.items():
        thread = "(16,0,0)" if what == "outside" else "(0,0,0)"
        insn = "sust.b.2d.b32.trap" if what in ("outside", "array") else "tex.1d.v4.s32.s32"
        done = p.run(program, what)
        check("an illegal memory access" in done.stdout and text in done.stderr and
              f"thread {thread}" in done.stderr and f"{insn} (" in done.stderr and
              "textures_faulty.cu:" in done.stderr, f"{what}: {done.stdout}{done.stderr}")
        done = p.run(program, what, options=["--check=memory"])
        check(done.returncode == 66 and f": {kind}: kernel '" in done.stderr and
              done.stderr.count(text) == 1, f"{what}, checked: {done.stderr}")
    done = p.run(program, "nothing", options=["--check=all"])
    check(done.returncode == 0 and "no error" in done.stdout and
          "was not freed" not in done.stderr.split("note:")[0], f"nothing: {done.stderr}")


def main():
    p, _, _ = from_command_line(__doc__)
    seed = int(os.environ.get("GPUSIM_SEED") or random.randrange(1 << 32))
    test_fetches(p, seed)
    test_programs(p)
    test_faults(p)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
