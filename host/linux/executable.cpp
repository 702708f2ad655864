#include "host/linux/executable.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "translator/common/isa_list.h"

namespace gpusim::host {
namespace {

constexpr int kMostScripts = 4;  // one that starts another

bool is_for_an_isa(std::string_view head) {
  if (head.size() < 20 || std::memcmp(head.data(), ELFMAG, SELFMAG) != 0) return false;
  uint16_t machine;
  std::memcpy(&machine, head.data() + 18, sizeof machine);
  const auto isas = all_isas();
  return std::ranges::any_of(isas,
                             [&](const GuestIsa* isa) { return isa->elf_machine == machine; });
}

Executable failed(int error) { return {.error = error, .path = {}, .arguments = {}}; }

}  // namespace

std::vector<std::string> interpreter_line(std::string_view head) {
  if (!head.starts_with("#!")) return {};
  const size_t end = head.find('\n');
  std::string_view line = head.substr(2, (end == head.npos ? head.size() : end) - 2);
  const auto trim = [](std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    return text;
  };
  line = trim(line);
  const size_t gap = std::min(line.find(' '), line.find('\t'));
  std::vector<std::string> words{std::string(line.substr(0, gap))};
  if (gap != line.npos) words.emplace_back(trim(line.substr(gap)));
  return words;
}

Executable find_executable(const PathPolicy& paths, const FolderRef& start, std::string path,
                           std::vector<std::string> arguments) {
  for (int i = 0; i <= kMostScripts; ++i) {
    const Place place = paths.find(start, path);
    if (place.error != 0) return failed(place.error);
    if (place.self || !place.may_read() || !S_ISREG(place.status.st_mode)) return failed(EACCES);
    const FileDescriptor file(reopen(place.fd(), O_RDONLY));
    if (::faccessat(AT_FDCWD, descriptor_path(place.fd()).c_str(), X_OK, 0) < 0 || !file)
      return failed(EACCES);
    std::array<char, 256> bytes{};
    const ssize_t size = ::pread(file.get(), bytes.data(), bytes.size(), 0);
    const std::string_view head(bytes.data(), static_cast<size_t>(std::max<ssize_t>(size, 0)));
    std::vector<std::string> words = interpreter_line(head);
    if (words.empty()) {
      if (!is_for_an_isa(head)) return failed(ENOEXEC);
      const bool is_own = place.own == OwnFile::kProgram;
      return {.path = is_own ? paths.program() : place.path(), .arguments = std::move(arguments)};
    }
    if (words.front().empty()) return failed(ENOEXEC);
    words.push_back(path);
    if (!arguments.empty()) words.insert(words.end(), arguments.begin() + 1, arguments.end());
    path = words.front();
    arguments = std::move(words);
  }
  return failed(ELOOP);
}

}  // namespace gpusim::host
