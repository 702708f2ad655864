#!/usr/bin/env python3
"""put_back.py SOURCE_FOLDER OUTPUT_FOLDER

Copies device_sim/cuda, and what else has one, with faults that it once had, or might have. FAULT(n)
chooses when the program runs (chosen.h). A fault whose text is not found any more is listed in
OUTPUT_FOLDER/not_put_back.txt; the test fails then and says so.
"""

import pathlib
import shutil
import sys

# number, file, text, text with the fault
FAULTS = [
    # Lanes that do not run branch over a reduction that the others wait in.
    (1, "cuda/warp.cuh",
     "const uint32_t least_low = warp_min(",
     "const uint32_t least_low = FAULT(1) && !counts ? ~0u : warp_min("),
    # A register that the host wrote keeps its former value for whoever reads it.
    (2, "cuda/contexts.cuh",
     "      gathered_row(slot)[place] = value;\n"
     "      is_written_[slot] = true;\n",
     "      if (FAULT(2)) return writes_.push_back({core, slot, value});\n"
     "      gathered_row(slot)[place] = value;\n"
     "      is_written_[slot] = true;\n"),
    # Lanes that spin keep those of their warp waiting that they wait for.
    (3, "cuda/warp.cuh",
     "turns_.patience -= settled_ - left;",
     "turns_.patience -= FAULT(3) ? 0 : settled_ - left;"),
    (3, "cuda/warp.cuh",
     "turns_.charge_polls(",
     "if (!FAULT(3)) turns_.charge_polls("),
    # A kernel that does not end.
    (4, "cuda/warp.cuh",
     "void Warp::run_slice() {\n",
     "void Warp::run_slice() {\n  while (FAULT(4)) __threadfence();\n"),
    # Blocks are counted twice.
    (5, "cuda/warp.cuh",
     "  ++repeats_;\n",
     "  repeats_ += FAULT(5) ? 2 : 1;\n"),
    # The guest's fences do nothing.
    (6, "core/device_atomics.h",
     "fence_all() { __threadfence(); }",
     "fence_all() { if (!FAULT(6)) __threadfence(); }"),
    # A core is the same lane in every slice.
    (7, "cuda/kernel.cuh",
     "(threadIdx.x + launch.slice)",
     "(threadIdx.x + (FAULT(7) ? 0 : launch.slice))"),
]


def main():
    source, output = map(pathlib.Path, sys.argv[1:])
    copies = output / "device_sim"
    shutil.rmtree(copies, ignore_errors=True)
    shutil.copytree(source / "device_sim" / "cuda", copies / "cuda")
    for name in {name for _, name, _, _ in FAULTS}:
        (copies / name).parent.mkdir(exist_ok=True)
        shutil.copy(source / "device_sim" / name, copies / name)
    missing = []
    for number, name, sound, faulty in FAULTS:
        path = copies / name
        text = path.read_text() if path.exists() else ""
        if text.count(sound) == 1:
            path.write_text(text.replace(sound, faulty))
        else:
            missing.append(f"fault {number}: {name} has this {text.count(sound)} times, not once: "
                           f"{sound.strip()}\n")
    (output / "not_put_back.txt").write_text("".join(missing))


if __name__ == "__main__":
    main()
