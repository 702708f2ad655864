"""GCC's test suite from Debian's package gcc-12-source: unpacking it, and what tests ask for."""

import fcntl
import pathlib
import re
import subprocess
import sys

COMPILER = "/usr/bin/aarch64-linux-gnu-gcc"
ARCHIVES = pathlib.Path("/usr/src/gcc-12")
DIRECTIVE = re.compile(r"\{ *(dg-[a-z-]+) +((?:[^{}]|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\})*)\}")
OPTIONS = re.compile(r'^\{? *"([^"]*)" *\}? *(\{.*\})?')


def unpack(folder, suite, below="gcc/testsuite"):
    """Unpacks `suite`, a path below gcc/testsuite, into `folder` once; gives where it lies."""
    sources = folder / pathlib.PurePath(suite).name
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "unpack.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if sources.exists():
            return sources
        archives = sorted(ARCHIVES.glob("gcc-12*-dfsg.tar.xz"))
        if not archives:
            sys.exit(f"no GCC sources in {ARCHIVES}: install the package gcc-12-source "
                     "(scripts/setup)")
        partial = folder / f"unpacking-{sources.name}"
        partial.mkdir(exist_ok=True)
        depth = len(pathlib.PurePath(below).parts) + len(pathlib.PurePath(suite).parts)
        subprocess.run(["tar", "-C", partial, "-xf", archives[-1], "--wildcards",
                        f"--strip-components={depth}", f"*/{below}/{suite}"], check=True)
        (partial / sources.name).rename(sources)
        partial.rmdir()
    return sources


def is_for_a64(selector):
    """Whether a target selector holds for us; selectors of other machines do not.

    Only what the suites in use write: no target named, every target, or AArch64 among them.
    """
    targets = re.findall(r"[\w*?-]+-\*-\*|\*-\*-\*|[\w*]+-\*-[\w*-]+", selector)
    if re.search(r"\b(avx|sse|vsx|power|altivec|mips|ia32|x86|sparc|aarch64_sve)", selector):
        return False
    return not targets or any(t == "*-*-*" or t.startswith(("aarch64", "*-*-"))
                              for t in targets)


class Directives:
    """A test's dg directives. `options` replace a suite's own flags, `additional` come on top."""

    def __init__(self, text):
        self.action, self.options, self.additional, self.features = None, None, [], []
        for name, rest in DIRECTIVE.findall(text):
            rest = rest.strip()
            if name == "dg-do":
                action, _, selector = rest.partition(" ")
                self.action = action if is_for_a64(selector) else "none"
            elif name == "dg-add-options":
                self.features.append(rest)
            elif name in ("dg-options", "dg-additional-options"):
                parsed = OPTIONS.match(rest)
                if not parsed or (parsed[2] and not is_for_a64(parsed[2])):
                    continue
                if name == "dg-options":
                    self.options = parsed[1].split()
                else:
                    self.additional += parsed[1].split()
