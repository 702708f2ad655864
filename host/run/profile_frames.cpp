#include "host/run/profile_frames.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

#include <cstdlib>
#include <memory>

namespace gpusim::host {
namespace {

using Scopes = std::unique_ptr<Dwarf_Die, decltype(&std::free)>;

std::string name_of(Dwarf_Die* die) {
  const char* const name = dwarf_diename(die);  // looks into the abstract origin, too
  return name ? name : "";
}

int number_of(Dwarf_Die* die, unsigned attribute) {
  Dwarf_Attribute a;
  Dwarf_Word value = 0;
  return dwarf_formudata(dwarf_attr(die, attribute, &a), &value) == 0 ? static_cast<int>(value) : 0;
}

// The place from which an inlined function was called.
void set_call_place(Dwarf_Die* unit, Dwarf_Die* inlined, Frame& frame) {
  frame.line = number_of(inlined, DW_AT_call_line);
  const int file = number_of(inlined, DW_AT_call_file);
  Dwarf_Files* files = nullptr;
  size_t count = 0;
  frame.file.clear();
  if (dwarf_getsrcfiles(unit, &files, &count) != 0 || file < 0 ||
      static_cast<size_t>(file) >= count)
    return;
  const char* const name = dwarf_filesrc(files, static_cast<size_t>(file), nullptr, nullptr);
  if (name) frame.file = name;
}

}  // namespace

std::vector<Frame> InlineFrames::at(uint64_t pc) const {
  std::vector<Frame> frames;
  Dwfl* const dwfl = info_.get();
  Dwfl_Module* const module = dwfl ? dwfl_addrmodule(dwfl, pc) : nullptr;
  if (!module) return frames;
  Frame here;
  if (Dwfl_Line* const line = dwfl_module_getsrc(module, pc)) {
    const char* const file = dwfl_lineinfo(line, nullptr, &here.line, nullptr, nullptr, nullptr);
    if (file && here.line != 0) here.file = file;
  }
  Dwarf_Addr bias = 0;
  Dwarf_Die* const unit = dwfl_module_addrdie(module, pc, &bias);
  Dwarf_Die* innermost = nullptr;
  const int depth = unit ? dwarf_getscopes(unit, pc - bias, &innermost) : 0;
  const Scopes keep(innermost, &std::free);
  // Behind an inlined function dwarf_getscopes lists the scopes of its definition; those of the place
  // come from the entry itself.
  Dwarf_Die* outer = nullptr;
  const int count = depth > 0 ? dwarf_getscopes_die(&innermost[0], &outer) : 0;
  const Scopes keep_outer(outer, &std::free);
  for (int i = 0; i < count; ++i) {
    const int tag = dwarf_tag(&outer[i]);
    if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram) continue;
    here.function = name_of(&outer[i]);
    frames.push_back(here);
    if (tag == DW_TAG_subprogram) return frames;
    set_call_place(unit, &outer[i], here);
  }
  here.function.clear();
  if (!here.file.empty()) frames.push_back(here);
  return frames;
}

}  // namespace gpusim::host
