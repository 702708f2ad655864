#!/usr/bin/env python3
"""Sources are formatted, their lines short, and cheap checkers find nothing.

  test_format.py SOURCE_FOLDER [--update] [UNITTEST ARGUMENT]...

What predates these checks is listed in `long_lines` and `unformatted` beside this file. The lists
only shrink: a file that no longer needs its entry fails, until --update takes the entry out.
"""

import concurrent.futures
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest
import warnings

HERE = pathlib.Path(__file__).resolve().parent
COLUMNS = 100
CLANG_FORMAT = 14  # Debian 12's; others break lines elsewhere
C_SUFFIXES = {".c", ".cc", ".cpp", ".cu", ".cuh", ".h"}
# Data, tables, texts of programs, and what programs wrote.
NO_LINES = {".csv", ".css", ".diff", ".gsm", ".html", ".js", ".json", ".patch", ".png", ".ptx",
            ".svg", ".tsv", ".txt"}


def tracked_files(root):
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True, check=True)
    names = sorted(os.fsdecode(name) for name in listed.stdout.split(b"\0") if name)
    return [name for name in names if (root / name).is_file()]


def long_lines(name, text):
    """(number, columns) of each. Of prose, tables, code and what has no blank cannot be broken."""
    is_prose, in_code = name.endswith(".md"), False
    for number, line in enumerate(text.split("\n"), 1):
        if is_prose and re.match(r"\s*(```|~~~)", line):
            in_code = not in_code
        if len(line) <= COLUMNS or is_prose and (in_code or line.lstrip().startswith(("|", "!["))):
            continue
        at = line.rfind(" ", 0, COLUMNS + 1)
        unbroken = is_prose and (not line[:at + 1].strip(" -*") or "`" in line[at:] or
                                 "](" in line[at:])
        if "http" not in line and not unbroken:
            yield number, len(line)


def read_list(name):
    """{path: what stands beside it}"""
    entries = {}
    for line in (HERE / name).read_text().splitlines():
        if line and not line.startswith("#"):
            path, _, rest = line.partition(" | ")
            entries[path] = rest
    return entries


def write_list(name, entries):
    comment = [line for line in (HERE / name).read_text().splitlines() if line.startswith("#")]
    lines = comment + [f"{path} | {rest}" if rest else path
                       for path, rest in sorted(entries.items())]
    (HERE / name).write_text("\n".join(lines) + "\n")


class Format(unittest.TestCase):
    root: pathlib.Path
    update = False

    @classmethod
    def setUpClass(cls):
        cls.files = tracked_files(cls.root)

    def text(self, name):
        try:
            return (self.root / name).read_text()
        except UnicodeDecodeError:  # not a text
            return ""

    def first_line(self, name):
        with open(self.root / name, "rb") as file:
            return file.readline(200)

    def check_list(self, name, found, problems):
        """`found`: what the list would say of the files as they are."""
        if self.update:
            listed = read_list(name)
            write_list(name, {path: min(found[path], listed[path], key=lambda n: int(n or 0))
                              for path in listed if path in found})
        self.assertEqual(problems, [], "\n" + "\n".join(problems))
        stale = set(read_list(name)) - set(found)
        self.assertEqual(stale, set(), f"no longer needed in tests/format/{name}; "
                         "tests/format/test_format.py . --update takes them out")

    def test_lines_are_short(self):
        allowed, found, problems = read_list("long_lines"), {}, []
        for name in self.files:
            if pathlib.PurePath(name).suffix in NO_LINES or "/golden/" in name:
                continue
            lines = list(long_lines(name, self.text(name)))
            if lines:
                found[name] = str(len(lines))
            if len(lines) > int(allowed.get(name, 0)):
                problems += [f"{name}:{number}: {columns} columns; break the line after at most "
                             f"{COLUMNS}" for number, columns in lines]
        self.check_list("long_lines", found, problems)

    def test_c_and_cpp_are_formatted(self):
        allowed, found, problems = read_list("unformatted"), {}, []

        def errors(batch):
            done = subprocess.run(["clang-format", "--dry-run", "--Werror", *batch], cwd=self.root,
                                  capture_output=True, text=True, check=False)
            lines = [line for line in done.stderr.splitlines() if ": error:" in line]
            self.assertEqual(done.returncode != 0, bool(lines), done.stderr)
            return lines

        names = [name for name in self.files if pathlib.PurePath(name).suffix in C_SUFFIXES]
        self.assertGreater(len(names), 1000, "the sources are not where they were")
        batches = [names[at:at + 40] for at in range(0, len(names), 40)]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for line in itertools.chain.from_iterable(pool.map(errors, batches)):
                name = line.partition(":")[0]
                found[name] = ""
                if name not in allowed:
                    problems.append(f"{line}; run clang-format -i {name}")
        self.check_list("unformatted", found, problems)

    def test_shell_scripts_are_sound(self):
        scripts = [name for name in self.files
                   if re.match(rb"#!\S*/(env +)?(ba)?sh\b", self.first_line(name))]
        self.assertGreater(len(scripts), 10, "the scripts are not where they were")
        done = subprocess.run(["shellcheck", "--severity=warning", "--format=gcc", *scripts],
                              cwd=self.root, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, "\n" + done.stdout + done.stderr)

    def test_python_compiles_without_warnings(self):
        scripts = [name for name in self.files
                   if name.endswith(".py") or re.match(rb"#!.*\bpython3\b", self.first_line(name))]
        self.assertGreater(len(scripts), 50, "the scripts are not where they were")
        problems = []
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for name in scripts:
                try:
                    compile(self.text(name), name, "exec", dont_inherit=True)
                except (SyntaxError, Warning) as error:
                    problems.append(f"{name}: {error}")
        self.assertEqual(problems, [], "\n" + "\n".join(problems))

    def test_long_lines_are_found(self):
        long = "word " * 21
        self.assertEqual(list(long_lines("a.cpp", f"short\n{long}\n")), [(2, 105)])
        self.assertEqual(list(long_lines("a.md", long)), [(1, 105)])
        for text in (f"```\n{long}\n```", f"| {long} |", "- " + "x" * 120, f"http://a/ {long}"):
            self.assertEqual(list(long_lines("a.md", text)), [], text)


def main():
    Format.root = pathlib.Path(sys.argv.pop(1)).resolve()
    if "--update" in sys.argv:
        sys.argv.remove("--update")
        Format.update = True
    if not (Format.root / ".git").exists():
        print("skipped: not a git checkout")
        sys.exit(77)
    for tool in ("clang-format", "shellcheck"):
        if shutil.which(tool) is None:
            sys.exit(f"{tool} is not installed: run scripts/setup")
    version = subprocess.run(["clang-format", "--version"], capture_output=True, text=True,
                             check=True).stdout
    if f"version {CLANG_FORMAT}." not in version:
        print(f"skipped: {version.strip()}; the sources follow version {CLANG_FORMAT}")
        sys.exit(77)
    unittest.main()


if __name__ == "__main__":
    main()
