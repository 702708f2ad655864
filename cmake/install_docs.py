#!/usr/bin/env python3
"""Copies docs/ to where a package has them, with links and paths that hold there.

  install_docs.py SOURCE_FOLDER TARGET_FOLDER PREFIX

TARGET_FOLDER is where PREFIX/share/doc/gpusim is written. A link to a file that is installed leads
to it; of any other link its text stays, with the place in the sources. Paths of a build in commands
become those of an installed gpusim.
"""
import os
import pathlib
import re
import shutil
import sys

# Beside docs/, under the same names in the target folder.
FILES = ["energy/targets/template.json", "examples/*.c", "examples/*.h", "examples/image/*",
         "examples/caches/*.json",
         "examples/plugins/*.c", "examples/openmp/*.c", "examples/offload/*.c",
         "examples/python/*.ipynb"]
# Studies of programs that the package has the sources of: they are compiled beside the study.
STUDIES = ["docs/studies/scaling.json", "docs/studies/scaling_riscv64.json",
           "docs/studies/examples.json"]
PROGRAM_OF_BUILD = re.compile(r'"\.\./\.\./build/cpu/(?:examples|tests/bench)/(?:\w+/)?(\w+)\.elf"')
# For those who have the sources.
NOT_INSTALLED = ["docs/howto/backend.md", "docs/howto/isa.md", "docs/howto/uop.md"]
# Installed elsewhere: from the sources, below the prefix.
ELSEWHERE = {"host/plugin/gpusim_plugin.h": "include/gpusim/plugin/gpusim_plugin.h"}
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]*)(#[^)]*)?\)")


def paths_in_commands(text, prefix):
    for of_build, installed in (
            ("build/cpu/libgpusim/openmp/lib/", f"{prefix}/lib/gpusim/openmp/"),
            ("build/cpu/libgpusim/offload/", f"{prefix}/lib/gpusim/aarch64/"),
            ("build/cpu/examples/", ""),
            ("sweep docs/studies/", "sweep "),
            ("-Ihost/plugin", f"-I{prefix}/include/gpusim/plugin"),
            ("build/cpu/gpusim", "gpusim")):
        text = text.replace(of_build, installed)
    return re.sub(r"(?<![\w/.])(energy/targets/template\.json|examples/caches/)",
                  rf"{prefix}/share/doc/gpusim/\1", text)


class Pages:
    def __init__(self, source, target, prefix):
        self.source, self.target, self.prefix = source, target, prefix
        names = [p for p in (source / "docs").rglob("*") if p.is_file()]
        names += [p for pattern in FILES for p in source.glob(pattern)]
        self.files = {p.relative_to(source).as_posix() for p in names} - set(NOT_INSTALLED)

    @staticmethod
    def place(name):
        """Of a file of the sources, from the target folder."""
        return name.removeprefix("docs/")

    def link(self, page, match):
        mark, text, to, part = match.groups()
        if not to or "://" in to:
            return match[0]
        name = os.path.normpath(f"{os.path.dirname(page)}/{to}")
        here = os.path.dirname(self.place(page)) or "."
        if name in self.files or any(f.startswith(name + "/") for f in self.files):
            return f"{mark}[{text}]({os.path.relpath(self.place(name), here)}{part or ''})"
        if name in ELSEWHERE:
            up = os.path.relpath(".", f"share/doc/gpusim/{here}")
            return f"[{text}]({up}/{ELSEWHERE[name]})"
        return text if name in text else f"{text} (`{name}` of the sources)"

    def study(self, text):
        """Without the programs that the package has no sources of."""
        sources = {pathlib.PurePath(f).stem for f in self.files if f.endswith(".c")}

        def is_kept(line):
            program = PROGRAM_OF_BUILD.search(line)
            return not program or program[1] in sources

        kept = "\n".join(filter(is_kept, text.split("\n")))
        return PROGRAM_OF_BUILD.sub(r'"\1.elf"', re.sub(r",(\s*\])", r"\1", kept))

    def write(self):
        for name in sorted(self.files):
            to = self.target / self.place(name)
            to.parent.mkdir(parents=True, exist_ok=True)
            if name.endswith(".md"):
                text = LINK.sub(lambda match, name=name: self.link(name, match),
                                (self.source / name).read_text())
                to.write_text(paths_in_commands(text, self.prefix))
            elif name in STUDIES:
                to.write_text(self.study((self.source / name).read_text()))
            else:
                shutil.copyfile(self.source / name, to)
            to.chmod(0o644)


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    os.umask(0o022)
    Pages(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]), sys.argv[3]).write()


if __name__ == "__main__":
    main()
