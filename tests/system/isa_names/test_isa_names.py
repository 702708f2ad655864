#!/usr/bin/env python3
"""No guest ISA is named in the sources outside of its own folders and the lists of them.

  test_isa_names.py SOURCE_FOLDER [UNITTEST ARGUMENT]...

Comments may: they give sources. So may build files, which list sources by folder.
"""

import pathlib
import re
import sys
import unittest

FOLDERS = ["device_sim", "host", "libgpusim", "qemu_bridge", "translator"]
SUFFIXES = {".c", ".cpp", ".cu", ".cuh", ".def", ".h"}
OWN_FOLDERS = {"a32", "a64", "aarch64", "arm", "riscv", "riscv32", "riscv64", "test", "t32"}
NAMES = re.compile(r"(?<![a-z0-9])(a32|a64|aarch32|aarch64|arm|armv\d\w*|arm64|risc-?v|riscv32|"
                   r"riscv64|rv32|rv64|t32)(?![a-z0-9])", re.IGNORECASE)
# A name that a capital begins or ends: A64Frame, kArm, RiscvIsa.
PARTS = re.compile(r"A(?:32|64)[A-Z]|A[Aa]rch(?:32|64)|Risc[Vv]|k(?:A64|Arm|Rv)(?![a-z])")

EXCEPTIONS = {
    "translator/common/isa_list.cpp": "the list of ISAs",
    "host/linux/abi.cpp": "the host's list of them: translator/ must not depend on host/",
    "translator/elf/elf_file.cpp": "tells the user which machine a file without translator is for",
    "qemu_bridge/daemon/serve.cpp": "the host's processor, not the guest's",
    # Code that runs in the guest is compiled for one ISA; the compiler says which.
    "libgpusim/guest/gpusim_guest.h": "takes up the folder of the ISA that it is compiled for",
    "libgpusim/offload/driver/port.c": "says which ISA it was compiled for",
    "libgpusim/openmp/wait.h": "takes up the folder of the ISA that it is compiled for",
}


def without_comments(text):
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group().count("\n"), text, flags=re.DOTALL)
    return re.sub(r"//[^\n]*", "", text)


def findings(text):
    for number, line in enumerate(without_comments(text).split("\n"), 1):
        if NAMES.search(line.replace("_", " ")) or PARTS.search(line):
            yield number, line.strip()


class IsaNames(unittest.TestCase):
    sources: pathlib.Path

    def files(self):
        for folder in FOLDERS:
            for path in sorted((self.sources / folder).rglob("*")):
                parts = path.relative_to(self.sources).parts
                if path.suffix in SUFFIXES and not OWN_FOLDERS.intersection(parts[:-1]):
                    yield path

    def test_no_isa_is_named_outside_of_its_folders(self):
        found, used, files = [], set(), 0
        for path in self.files():
            files += 1
            name = str(path.relative_to(self.sources))
            lines = list(findings(path.read_text(errors="replace")))
            if name in EXCEPTIONS and lines:
                used.add(name)
            elif lines:
                found += [f"{name}:{number}: {line}" for number, line in lines]
        self.assertGreater(files, 300, "the sources are not where they were")
        self.assertEqual(found, [], "ISAs are named outside of their folders:\n" + "\n".join(found))
        self.assertEqual(used, set(EXCEPTIONS), "exceptions that are none any more")

    def test_names_are_found(self):
        for line in ('if (isa == "aarch64")', "A64Frame frame;", "#ifdef __riscv", "kArm[]",
                     '#include "translator/a64/text.h"', "rv64_step()", "EM_ARM"):
            self.assertTrue(list(findings(line)), line)
        for line in ("fma64(a, b)", "alarm(1)", "farm", "// arm64 has it so", "charm"):
            self.assertFalse(list(findings(line)), line)


if __name__ == "__main__":
    IsaNames.sources = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
