#!/usr/bin/env python3
"""Help texts, manual page and completions agree with the program.

  test_help.py GPUSIM HELP_FOLDER [UNITTEST ARGUMENT]...

HELP_FOLDER has what make_help_files.py wrote.
"""
import json
import os
import pathlib
import pty
import re
import select
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import unittest


def walk(command):
    yield command
    for child in command["commands"]:
        yield from walk(child)


class Help(unittest.TestCase):
    gpusim: pathlib.Path
    folder: pathlib.Path

    @classmethod
    def setUpClass(cls):
        done = subprocess.run([cls.gpusim, "--dump-help"], capture_output=True, text=True,
                              check=True)
        cls.program = json.loads(done.stdout)
        cls.commands = {command["command"]: command for command in walk(cls.program)}

    # Help

    def test_every_command_has_help_and_a_description(self):
        for path, command in self.commands.items():
            with self.subTest(path):
                done = subprocess.run([self.gpusim, *path.split(), "--help"], capture_output=True,
                                      text=True, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertTrue(command["description"])
                for example in command["examples"]:
                    self.assertIn(example["line"], done.stdout)

    def test_examples_use_options_that_exist(self):
        self.assertGreater(sum(len(c["examples"]) for c in self.commands.values()), 20)
        for path, command in self.commands.items():
            for example in command["examples"]:
                with self.subTest(example["line"]):
                    words = shlex.split(example["line"])
                    if "--" in words:
                        words = words[:words.index("--")]
                    self.assertEqual(words.pop(0), "gpusim")
                    at = ""
                    while words and f"{at} {words[0]}".strip() in self.commands:
                        at = f"{at} {words.pop(0)}".strip()
                    self.assertTrue(at.startswith(path))
                    known = {n for o in self.commands[at]["options"] for n in o["names"]}
                    for word in words:
                        if word.startswith("-"):
                            self.assertIn(word.split("=")[0], known)

    def test_exit_statuses_are_in_help_and_manual(self):
        done = subprocess.run([self.gpusim, "--help"], capture_output=True, text=True, check=True)
        page = (self.folder / "gpusim.1").read_text()
        for status in ("124", "125", "130"):
            self.assertRegex(done.stdout, rf"(?m)^  {status} ")
            self.assertIn(status, page)

    # Manual page

    def test_the_manual_page_has_every_option(self):
        page = (self.folder / "gpusim.1").read_text()
        for command in self.commands.values():
            for option in command["options"]:
                for name in option["names"]:
                    self.assertIn("\\fB" + name.replace("-", "\\-") + "\\fR", page)

    def test_the_manual_page_is_formatted_without_warnings(self):
        if not shutil.which("groff"):
            self.skipTest("groff is not installed")
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", str(self.folder / "gpusim.1")],
                              capture_output=True, text=True, check=True)
        self.assertEqual(done.stderr, "")
        text = re.sub("\x1b\\[[0-9;]*m|.\b", "", done.stdout)
        for heading in ("NAME", "SYNOPSIS", "COMMANDS", "EXIT STATUS", "ENVIRONMENT", "EXAMPLES"):
            self.assertIn("\n" + heading + "\n", text)

    # Completion

    def bash_completes(self, *words):
        script = f"""source {shlex.quote(str(self.folder / 'gpusim.bash'))}
COMP_WORDS=({' '.join(shlex.quote(w) for w in words)}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_gpusim; printf '%s\\n' "${{COMPREPLY[@]}}" """
        done = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True,
                              check=True)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_bash_completes_commands_options_and_values(self):
        names = [c["command"] for c in self.program["commands"]]
        self.assertEqual(self.bash_completes("gpusim", ""), names)
        self.assertEqual(self.bash_completes("gpusim", "tr"), ["translate"])
        self.assertIn("estimate", self.bash_completes("gpusim", "energy", ""))
        self.assertEqual(self.bash_completes("gpusim", "run", "prog", "--memory", "p"), ["private"])
        self.assertEqual(self.bash_completes("gpusim", "run", "--memory", "=", "s"), ["shared"])
        self.assertEqual(self.bash_completes("gpusim", "run", "prog", "--backend", "sc"),
                         ["scalar"])
        self.assertEqual(self.bash_completes("gpusim", "run", "--energy", "fermi,et"),
                         ["fermi,et-soc1"])
        self.assertEqual(self.bash_completes("gpusim", "run", "prog", "--stats", "x"), [])  # a file
        # the guest's
        self.assertEqual(self.bash_completes("gpusim", "run", "prog", "--", "--ba"), [])

    def test_bash_completes_every_option_of_every_command(self):
        for path, command in self.commands.items():
            names = {n for o in command["options"] for n in o["names"]}
            self.assertEqual(set(self.bash_completes("gpusim", *path.split(), "-")), names, path)

    def test_tab_in_a_real_bash(self):
        environment = {**os.environ, "PS1": "$ ", "TERM": "dumb", "HISTFILE": "/dev/null"}
        environment.pop("PROMPT_COMMAND", None)
        child, terminal = pty.fork()
        if child == 0:
            os.execvpe("bash", ["bash", "--norc", "--noprofile"], environment)
        try:
            source = shlex.quote(str(self.folder / "gpusim.bash"))
            os.write(terminal, f"source {source}\ngpusim tran\t--qu\t".encode())
            seen, end = "", time.monotonic() + 20
            while "gpusim translate --quiet" not in seen and time.monotonic() < end:
                if select.select([terminal], [], [], 0.2)[0]:
                    seen += os.read(terminal, 4096).decode(errors="replace")
            self.assertIn("gpusim translate --quiet", seen)
        finally:
            os.kill(child, 9)
            os.waitpid(child, 0)
            os.close(terminal)

    def test_zsh_reads_its_completion(self):
        if not shutil.which("zsh"):
            self.skipTest("zsh is not installed")
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(self.folder / "_gpusim", folder)
            script = (f"fpath=({shlex.quote(folder)} $fpath); autoload -Uz compinit; "
                      f"compinit -u -d {shlex.quote(folder)}/dump; echo $_comps[gpusim]; "
                      "autoload +X _gpusim && echo loaded")
            done = subprocess.run(["zsh", "-f", "-c", script], capture_output=True, text=True,
                                  check=True)
        self.assertEqual((done.stdout, done.stderr), ("_gpusim\nloaded\n", ""))

    # JSON on request

    def json_of(self, *words):
        done = subprocess.run([self.gpusim, *map(str, words)], capture_output=True, text=True,
                              check=True)
        return json.loads(done.stdout)

    def test_info_as_json(self):
        info = self.json_of("info", "--json")
        self.assertEqual(info["isas"][0]["name"], "aarch64")
        self.assertTrue(all(("device" if b["available"] else "reason") in b
                            for b in info["backends"]))
        self.assertEqual({t["name"] for t in self.json_of("energy", "targets", "--json")}
                         & {"fermi", "et-soc1"}, {"fermi", "et-soc1"})
        self.assertEqual([t["name"] for t in self.json_of("energy", "targets", "fermi", "--json")],
                         ["fermi"])

    def test_a_timeline_as_json_adds_up(self):
        with tempfile.TemporaryDirectory() as folder:
            schedule = pathlib.Path(folder) / "s.json"
            schedule.write_text('{"steps": [{"transfer": 1000000, "unit": "B"}, {"pause": 20, '
                                '"unit": "s"}]}')
            curve = self.json_of("energy", "timeline", schedule, "--target", "fermi", "--json")
        self.assertEqual(curve["target"], "fermi")
        self.assertAlmostEqual(sum(s["energy_J"] for s in curve["segments"]), curve["energy_J"], 6)
        self.assertAlmostEqual(curve["segments"][-1]["end_s"], curve["duration_s"], 9)

    def test_a_listing_as_json_has_what_the_text_has(self):
        for isa, text in (("aarch64", "add x0, x1, x2"), ("riscv64", "add a0,a1,a2")):
            with self.subTest(isa=isa):
                compiler = shutil.which(f"{isa}-linux-gnu-gcc")
                if not compiler:
                    self.skipTest(f"{isa}-linux-gnu-gcc is not installed")
                self.check_listing(compiler, text)

    def check_listing(self, compiler, instruction):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "p.elf"
            subprocess.run([compiler, "-nostdlib", "-static", "-xc", "-", "-o", program], text=True,
                           check=True,
                           input="void _start(void) { for (;;) __asm__(\"%s\"); }" % instruction)
            blocks = self.json_of("disasm", program, "--json")
            text = subprocess.run([self.gpusim, "disasm", program], capture_output=True, text=True,
                                  check=True).stdout
            info = self.json_of("info", "--json", "--program", program, "--cores", 8)
            module = self.json_of("translate", program, "-o", pathlib.Path(folder) / "p.gsm",
                                  "--json")
        instructions = [i for b in blocks for i in b["instructions"]]
        self.assertIn("_start", blocks[0]["functions"])
        self.assertIn(instruction, [i["text"] for i in instructions])
        for insn in instructions:
            self.assertIn(insn["text"], text)
            for uop in insn["micro_ops"]:
                self.assertIn(uop, text)
        self.assertEqual((module["instructions"], module["blocks"], module["unknown"]),
                         (len(instructions), len(blocks), []))
        self.assertEqual((info["cores"], info["context_bytes"]), (8, 8 * info["context_slots"]))


if __name__ == "__main__":
    Help.gpusim, Help.folder = map(pathlib.Path, (sys.argv[1], sys.argv[2]))
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
