#include "host/uninitialised/names.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>

#include "translator/common/translator.h"

namespace gpusim::host::uninitialised {
namespace {

// A symbol's name without what C libraries put before and behind those of one function: "strlen" of
// "__strlen_asimd".
std::string_view plain_name(std::string_view name) {
  name.remove_prefix(std::min(name.find_first_not_of('_'), name.size()));
  return name.substr(0, name.find('_'));
}

// Whether the function there has one of the names; it may have several.
bool has_name(const Module& module, uint64_t pc, std::span<const std::string_view> names) {
  const auto next = std::upper_bound(module.symbols.begin(), module.symbols.end(), pc,
                                     [](uint64_t at, const Symbol& s) { return at < s.address; });
  std::optional<uint64_t> begin;
  for (auto it = next; it != module.symbols.begin();) {
    --it;
    if (!it->is_function) continue;
    if (begin && it->address != *begin) return false;
    if (it->size_bytes != 0 && pc - it->address >= it->size_bytes) return false;
    begin = it->address;
    if (std::find(names.begin(), names.end(), plain_name(it->name)) != names.end()) return true;
  }
  return false;
}

}  // namespace

bool is_in_string_function(const Module& module, uint64_t pc) {
  static constexpr std::string_view kNames[] = {
      "index",      "rindex",      "memchr",  "memrchr",   "rawmemchr", "stpcpy",  "stpncpy",
      "strcasecmp", "strcat",      "strchr",  "strchrnul", "strcmp",    "strcpy",  "strcspn",
      "strlen",     "strncasecmp", "strncat", "strncmp",   "strncpy",   "strnlen", "strpbrk",
      "strrchr",    "strspn",      "strstr",  "wcslen",    "wcsnlen",   "wmemchr"};
  return has_name(module, pc, kNames);
}

bool is_in_unnamed_function(const Module& module, uint64_t pc) {
  const SharedObject* const object = shared_object_at(module, pc);
  if (!object) return false;
  const std::string name = object->name();
  if (!name.starts_with("libc.") && !name.starts_with("libc-") && !name.starts_with("ld-"))
    return false;
  const std::string symbol = symbolize(module, pc);
  return symbol.starts_with("0x") || symbol.starts_with("[");
}

bool changes_stacks(const Module& module, uint64_t pc) {
  static constexpr std::string_view kNames[] = {"longjmp", "setcontext", "siglongjmp",
                                                "startcontext", "swapcontext"};
  return has_name(module, pc, kNames);
}

const SystemCall* checked_call(std::string_view name) {
  using Bytes = SystemCall::Bytes;
  static constexpr SystemCall kCalls[] = {
      {"close", 1},
      {"dup", 1},
      {"exit", 1},
      {"exit_group", 1},
      {"fstat", 2},
      {"getcwd", 2},
      {"getdents64", 3},
      {"ioctl", 2},
      {"kill", 2},
      {"lseek", 3},
      {"mprotect", 3},
      {"munmap", 2},
      {"nanosleep", 2},
      {"openat", 3},
      {"pread64", 4},
      {"pwrite64", 4, Bytes::kBuffer},
      {"pwritev", 4, Bytes::kPieces},
      {"read", 3},
      {"readv", 3},
      {"sendto", 3, Bytes::kBuffer},
      {"write", 3, Bytes::kBuffer},
      {"writev", 3, Bytes::kPieces},
  };
  for (const SystemCall& call : kCalls)
    if (name == call.name) return &call;
  return nullptr;
}

}  // namespace gpusim::host::uninitialised
