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

SourceLines::SourceLines(const std::string& path) : dwfl_(dwfl_begin(&kCallbacks)) {
  if (!dwfl_) return;
  dwfl_report_begin(dwfl_);
  dwfl_report_elf(dwfl_, path.c_str(), path.c_str(), -1, 0, false);
  dwfl_report_end(dwfl_, nullptr, nullptr);
}

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
