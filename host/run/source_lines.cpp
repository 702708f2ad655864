#include "host/run/source_lines.h"

#include <elfutils/libdwfl.h>
#include <fmt/format.h>

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

}  // namespace

Dwfl* open_debug_info(const std::string& path) {
  Dwfl* const dwfl = dwfl_begin(&kCallbacks);
  if (!dwfl) return nullptr;
  dwfl_report_begin(dwfl);
  dwfl_report_elf(dwfl, path.c_str(), path.c_str(), -1, 0, false);
  dwfl_report_end(dwfl, nullptr, nullptr);
  return dwfl;
}

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
