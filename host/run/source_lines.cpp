#include "host/run/source_lines.h"

#include <elfutils/libdwfl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

namespace gpusim::host {
namespace {

// No debug information from other files: only the program's own is sure to be the right one.
constexpr Dwfl_Callbacks kCallbacks = {
    .find_elf = nullptr,
    .find_debuginfo = [](Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*,
                         GElf_Word, char**) { return -1; },
    .section_address = dwfl_offline_section_address,
    .debuginfo_path = nullptr};

// `file`: taken over; -1: the one of this name.
Dwfl* open(const char* name, int file) {
  Dwfl* const dwfl = dwfl_begin(&kCallbacks);
  const Dwfl_Module* module = nullptr;
  if (dwfl) {
    dwfl_report_begin(dwfl);
    module = dwfl_report_elf(dwfl, name, name, file, 0, false);
    dwfl_report_end(dwfl, nullptr, nullptr);
  }
  if (!module && file >= 0) ::close(file);
  return dwfl;
}

}  // namespace

Dwfl* open_debug_info(const std::string& path) { return open(path.c_str(), -1); }

Dwfl* open_debug_info(int file) { return open("program", ::dup(file)); }

SourceLines::SourceLines(const std::string& path) : dwfl_(open_debug_info(path)) {}
SourceLines::~SourceLines() { dwfl_end(dwfl_); }

std::string SourceLines::at(uint64_t pc) const {
  Dwfl_Module* const module = dwfl_ ? dwfl_addrmodule(dwfl_, pc) : nullptr;
  Dwfl_Line* const line = module ? dwfl_module_getsrc(module, pc) : nullptr;
  int number = 0;
  const char* const file =
      line ? dwfl_lineinfo(line, nullptr, &number, nullptr, nullptr, nullptr) : nullptr;
  if (!file || number == 0) return {};
  return fmt::format("{}:{}", std::filesystem::path(file).filename().string(), number);
}

}  // namespace gpusim::host
