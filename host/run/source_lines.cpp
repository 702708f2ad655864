#include "host/run/source_lines.h"

#include <elfutils/libdwfl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "translator/elf/elf_file.h"

namespace gpusim::host {
namespace {

// No debug information from other files: only a file's own is sure to be the right one.
constexpr Dwfl_Callbacks kCallbacks = {
    .find_elf = nullptr,
    .find_debuginfo = [](Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*,
                         GElf_Word, char**) { return -1; },
    .section_address = dwfl_offline_section_address,
    .debuginfo_path = nullptr};

// `file`: taken over; -1: the one of this name. `base`: of a file that can be placed anywhere.
void report(Dwfl* dwfl, const char* name, int file, uint64_t base) {
  if (!dwfl_report_elf(dwfl, name, name, file, base, true) && file >= 0) ::close(file);
}

}  // namespace

DebugInfo::~DebugInfo() { dwfl_end(dwfl_); }

Dwfl* DebugInfo::get() {
  if (dwfl_ && (!module_ || objects_ == module_->shared_objects)) return dwfl_;
  dwfl_end(dwfl_);
  dwfl_ = dwfl_begin(&kCallbacks);
  if (!dwfl_) return nullptr;
  dwfl_report_begin(dwfl_);
  if (file_ >= 0)
    report(dwfl_, "program", ::dup(file_), kPieBase);
  else
    report(dwfl_, path_.c_str(), -1, kPieBase);
  if (module_) objects_ = module_->shared_objects;
  for (const SharedObject& o : objects_) report(dwfl_, o.path.c_str(), -1, o.bias);
  dwfl_report_end(dwfl_, nullptr, nullptr);
  return dwfl_;
}

std::string SourceLines::at(uint64_t pc) const {
  Dwfl* const dwfl = info_.get();
  Dwfl_Module* const module = dwfl ? dwfl_addrmodule(dwfl, pc) : nullptr;
  Dwfl_Line* const line = module ? dwfl_module_getsrc(module, pc) : nullptr;
  int number = 0;
  const char* const file =
      line ? dwfl_lineinfo(line, nullptr, &number, nullptr, nullptr, nullptr) : nullptr;
  if (!file || number == 0) return {};
  return fmt::format("{}:{}", std::filesystem::path(file).filename().string(), number);
}

}  // namespace gpusim::host
