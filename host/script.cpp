#include "host/script.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "device_sim/base/error.h"
#include "device_sim/base/file_descriptor.h"
#include "host/linux/executable.h"

namespace gpusim::host {
namespace {

// What stands in the first line of the program; empty: it is no script, or cannot be read.
std::vector<std::string> first_line(const std::string& program) {
  struct stat status {};
  if (::stat(program.c_str(), &status) < 0 || !S_ISREG(status.st_mode)) return {};
  const FileDescriptor file(::open(program.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 256> bytes{};
  const ssize_t size = file ? ::read(file.get(), bytes.data(), bytes.size()) : 0;
  return size > 0 ? interpreter_line({bytes.data(), static_cast<size_t>(size)})
                  : std::vector<std::string>();
}

}  // namespace

RunOptions with_interpreter(RunOptions options) {
  std::vector<std::string> words = first_line(options.program);
  if (words.empty()) return options;
  const auto wrong = [&](const std::string& why) {
    return Error(fmt::format("{}: a script, {}", options.program, why));
  };
  if (words.front().empty()) throw wrong("whose first line names no interpreter");
  if (options.entry) throw wrong("in which --entry finds no function: give it a program");
  const PathPolicy paths(options.roots, options.program, options.sysroot.value_or(""));
  const FolderRef here = paths.find(nullptr, std::filesystem::current_path().string()).self;
  if (const Place script = paths.find(here, options.program);
      script.error != 0 || !script.may_read())
    throw wrong("which its interpreter could not read: give its folder by --root FOLDER:ro");
  const std::string interpreter = words.front();
  words.push_back(options.program);
  words.insert(words.end(), options.program_args.begin(), options.program_args.end());
  const Executable found = find_executable(paths, here, interpreter, std::move(words));
  const std::string where =
      options.sysroot ? "--sysroot " + *options.sysroot : std::string("a --sysroot");
  switch (found.error) {
    case 0:
      break;
    case ENOENT:
    case EACCES:
      throw wrong(
          fmt::format("and its interpreter {} is no program in {}: give the folder that holds it, "
                      "and what it needs, by --sysroot",
                      interpreter, where));
    case ENOEXEC:
      throw wrong(
          fmt::format("and its interpreter {} is not of an ISA that gpusim simulates: give the "
                      "folder of one that is by --sysroot",
                      interpreter));
    default:
      throw wrong(
          fmt::format("and its interpreter {}: {}", interpreter, std::strerror(found.error)));
  }
  options.program = found.path;
  options.argv0 = found.arguments.front();
  options.program_args = {found.arguments.begin() + 1, found.arguments.end()};
  return options;
}

}  // namespace gpusim::host
