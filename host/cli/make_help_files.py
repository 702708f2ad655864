#!/usr/bin/env python3
"""Manual page and completions from what gpusim says of itself.  usage: make_help_files.py GPUSIM
FOLDER

Writes FOLDER/gpusim.1, FOLDER/gpusim.bash and FOLDER/_gpusim (zsh) from `GPUSIM --dump-help`.
"""
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys


def walk(command):
    """A command and all those below it."""
    yield command
    for child in command["commands"]:
        yield from walk(child)


# Manual page

def roff(text):
    """Text as roff prints it literally."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga").replace("'", "\\(aq")
    return re.sub(r"^\.", "\\\\&.", text)


def value_of(option):
    """What stands after an option, for people."""
    if not option["takes_value"]:
        return ""
    if option["choices"]:
        return "|".join(option["choices"]) if len(option["choices"]) <= 7 else "NAME"
    kind = re.split(r"[: ]", option["value"])[0]
    return {"UINT": "N", "INT": "N", "FLOAT": "X", "TEXT": "VALUE"}.get(kind, kind or "VALUE")


def synopsis(command):
    words = [f"\\fBgpusim {roff(command['command'])}".rstrip() + "\\fR"]
    for option in command["options"]:
        if option["positional"]:
            name = f"\\fI{roff(option['value'])}\\fR"
            words.append(name if option["required"] else f"[{name}]")
        elif option["required"]:
            words.append(f"\\fB{roff(option['names'][-1])}\\fR \\fI{roff(value_of(option))}\\fR")
    if command["commands"]:
        words.append("\\fICOMMAND\\fR")
    words.append("[\\fIOPTIONS\\fR]")
    if command["takes_rest"]:
        words.append("[\\fB\\-\\-\\fR \\fIARGS\\fR...]")
    return " ".join(words)


def manual_options(command):
    lines = []
    for option in command["options"]:
        names = ", ".join(f"\\fB{roff(name)}\\fR" for name in option["names"])
        value = roff(option["value"] if option["positional"] else value_of(option))
        lines += [".TP", f"{names} \\fI{value}\\fR".strip() if value else names,
                  roff(option["description"])]
        if option["required"] and not option["positional"]:
            lines[-1] += " (required)"
    return lines


def manual_examples(command):
    lines = []
    for number, example in enumerate(command["examples"]):
        note = roff(example["note"][:1].upper() + example["note"][1:])
        lines += [".PP"] * (number > 0 or bool(command["command"])) + [note + ":", ".PP", ".RS 4",
                  ".nf", roff(example["line"]), ".fi", ".RE"]
    return lines


def manual(program, date):
    lines = [f'.TH GPUSIM 1 "{date}" "gpusim {program["version"]}" "User Commands"', ".SH NAME",
             "gpusim \\- run programs on thousands of simulated CPU cores", ".SH SYNOPSIS"]
    synopses = [synopsis(command) for command in walk(program)
                if command["command"] and not command["commands"]]
    lines += [".nh", ".ad l", "\n.br\n".join(synopses)]
    lines += [".SH DESCRIPTION",
              "gpusim runs AArch64 Linux programs on thousands of simulated CPU cores. It computes "
              "what the "
              "cores compute and counts what they execute, by class of instruction; energy models "
              "turn the "
              "counts into joules. A program is a static ELF file or a module that",
              "\\fBgpusim translate\\fR has written.", ".SH OPTIONS"]
    lines += manual_options(program) + [".SH COMMANDS"]
    for command in walk(program):
        if command["command"]:
            lines += [f".SS {roff(command['command'])}",
                      roff(command["description"].rstrip(".")) + ".", ".PP",
                      synopsis(command)]
            lines += manual_options(command) + manual_examples(command)
    lines += [".SH EXIT STATUS"]
    for status in program["exit_status"]:
        lines += [".TP", f"\\fB{roff(status['status'])}\\fR", roff(status["when"])]
    lines += [".SH ENVIRONMENT"]
    for variable in program["environment"]:
        lines += [".TP", f"\\fB{roff(variable['name'])}\\fR", roff(variable["meaning"])]
    lines += [".SH EXAMPLES"] + manual_examples(program)
    lines += [".SH SEE ALSO", "\\fBqemu\\-aarch64\\fR(1).", ".PP",
              "The tutorial and the manual are in \\fI/usr/share/doc/gpusim\\fR."]
    return "\n".join(lines) + "\n"


# Completion in bash

BASH = r"""# Completion of gpusim(1) for bash. Made from the program's own options.
_gpusim_commands() {
  case "$1" in
@COMMANDS@
  esac
}
_gpusim_options() {
  case "$1" in
@OPTIONS@
  esac
}
# Options that take a value: status 0, and the values that can be listed.
_gpusim_values() {
  case "$1" in
@VALUES@
    *) return 1 ;;
  esac
}
_gpusim() {
  local cur="${COMP_WORDS[COMP_CWORD]}" command="" option="" word values i
  COMPREPLY=()
  # Which command, and whether the word before is an option that wants a value.
  for ((i = 1; i < COMP_CWORD; ++i)); do
    word="${COMP_WORDS[i]}"
    [[ $word == -- ]] && return 0 # the guest's own arguments: files
    if [[ $word == = ]]; then     # --option=value arrives as three words
      continue
    elif [[ -n $option ]]; then
      option=""
    elif [[ $word == -* ]]; then
      _gpusim_values "$command $word" >/dev/null && option="$word"
    elif [[ " $(_gpusim_commands "$command") " == *" $word "* ]]; then
      command="${command:+$command }$word"
    fi
  done
  [[ $cur == = ]] && cur=""
  if [[ -n $option ]]; then
    values="$(_gpusim_values "$command $option")"
    # Lists with commas between: complete the last part.
    local head=""
    [[ $cur == *,* ]] && head="${cur%,*},"
    COMPREPLY=($(compgen -P "$head" -W "$values" -- "${cur##*,}"))
  elif [[ $cur == -* ]]; then
    COMPREPLY=($(compgen -W "$(_gpusim_options "$command")" -- "$cur"))
  else
    COMPREPLY=($(compgen -W "$(_gpusim_commands "$command")" -- "$cur"))
  fi
  return 0
}
complete -o bashdefault -o default -F _gpusim gpusim
"""


def bash(program):
    commands, options, values = [], [], []
    for command in walk(program):
        path = command["command"]
        names = [child["command"].split()[-1] for child in command["commands"]]
        if names:
            commands.append(f'    "{path}") echo "{" ".join(names)}" ;;')
        flags = [name for option in command["options"] for name in option["names"]]
        options.append(f'    "{path}") echo "{" ".join(flags)}" ;;')
        for option in command["options"]:
            if option["takes_value"] and not option["positional"]:
                patterns = "|".join(f'"{path} {name}"' for name in option["names"])
                values.append(f'    {patterns}) echo "{" ".join(option["choices"])}" ;;')
    return (BASH.replace("@COMMANDS@", "\n".join(commands)).replace("@OPTIONS@", "\n".join(options))
            .replace("@VALUES@", "\n".join(values)))


# Completion in zsh

def zsh_text(text):
    return re.sub(r"([\[\]:'\\`$\"])", lambda m: "" if m[1] in "'`\"$\\" else "\\" + m[1], text)


def zsh_action(option):
    if option["choices"]:
        return f"({' '.join(option['choices'])})"
    return "_files"


def zsh_arguments(command):
    lines = []
    for option in command["options"]:
        text = zsh_text(option["description"])
        for name in option["names"]:
            star = "*" if option["repeatable"] else ""
            value = ""
            if option["takes_value"]:
                value = f":{zsh_text(value_of(option)) or 'value'}:{zsh_action(option)}"
            lines.append(f"    '{star}{name}[{text}]{value}'")
    if command["commands"]:
        lines += ["    '1: :->command'", "    '*:: :->rest'"]
    else:
        lines.append("    '*:file:_files'")
    return " \\\n".join(lines)


def zsh_function(path):
    return "_gpusim" + "".join(f"_{word}" for word in path.split())


def zsh(program):
    text = ["#compdef gpusim",
            "# Completion of gpusim(1) for zsh. Made from the program's own options.", ""]
    for command in walk(program):
        text.append(f"{zsh_function(command['command'])}() {{")
        if command["commands"]:
            text += ["  local context curcontext=\"$curcontext\" state line",
                     "  typeset -A opt_args",
                     "  _arguments -C \\", zsh_arguments(command), "  case $state in",
                     "    command)",
                     "      local -a commands", "      commands=("]
            text += [f"        '{child['command'].split()[-1]}:{zsh_text(child['description'])}'"
                     for child in command["commands"]]
            text += ["      )", "      _describe command commands", "      ;;", "    rest)",
                     "      case $line[1] in"]
            text += [f"        {child['command'].split()[-1]}) {zsh_function(child['command'])} ;;"
                     for child in command["commands"]]
            text += ["      esac", "      ;;", "  esac"]
        else:
            text += ["  _arguments \\", zsh_arguments(command)]
        text += ["}", ""]
    return "\n".join(text + ['_gpusim "$@"', ""])


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    done = subprocess.run([sys.argv[1], "--dump-help"], capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit(f"make_help_files.py: {sys.argv[1]} --dump-help: status {done.returncode}")
    program = json.loads(done.stdout)
    folder = pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", os.stat(sys.argv[1]).st_mtime))
    date = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%d")
    for name, text in (("gpusim.1", manual(program, date)), ("gpusim.bash", bash(program)),
                       ("_gpusim", zsh(program))):
        unfinished = folder / (name + ".part")
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(folder / name)


if __name__ == "__main__":
    main()
