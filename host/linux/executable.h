// What execve(2) makes of a file: a program, or a script that names its interpreter.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "host/linux/path_policy.h"

namespace gpusim::host {

struct Executable {
  int error = 0;     // of execve(2)
  std::string path;  // on the host, of an ELF file
  std::vector<std::string> arguments;
};

// `start`: where relative paths begin. `arguments`: argv. A script becomes its interpreter, with
// the script's path among the arguments.
Executable find_executable(const PathPolicy& paths, const FolderRef& start, std::string path,
                           std::vector<std::string> arguments);

// Of a script that begins with `head`, what its first line says: the interpreter and its argument,
// if it has one. Empty: `head` is of no script. The interpreter may be "".
std::vector<std::string> interpreter_line(std::string_view head);

}  // namespace gpusim::host
