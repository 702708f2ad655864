#include "standin/places.h"

#include <cxxabi.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <unistd.h>

#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <unordered_map>

namespace cuda_emulated {
namespace {

Dwfl* own_program() {
  static Dwfl* const dwfl = [] {
    static const Dwfl_Callbacks callbacks{.find_elf = dwfl_linux_proc_find_elf,
                                          .find_debuginfo = dwfl_standard_find_debuginfo,
                                          .section_address = nullptr,
                                          .debuginfo_path = nullptr};
    Dwfl* const d = dwfl_begin(&callbacks);
    dwfl_linux_proc_report(d, getpid());
    dwfl_report_end(d, nullptr, nullptr);
    return d;
  }();
  return dwfl;
}

std::string place(const char* file, int line) {
  const char* const slash = file ? std::strrchr(file, '/') : nullptr;
  return std::string(slash ? slash + 1 : file ? file : "?") + ":" + std::to_string(line);
}

int number(Dwarf_Die* die, unsigned name) {
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  if (dwarf_attr_integrate(die, name, &attribute)) dwarf_formudata(&attribute, &value);
  return static_cast<int>(value);
}

const char* name_of(Dwarf_Die* die) {
  const char* const name = dwarf_diename(die);
  return name ? name : "?";
}

// Without scopes and parameters.
std::string plain_name(uintptr_t pc) {
  Dwfl_Module* const module = dwfl_addrmodule(own_program(), pc);
  const char* const mangled = module ? dwfl_module_addrname(module, pc) : nullptr;
  if (!mangled) return "?";
  char* const plain = abi::__cxa_demangle(mangled, nullptr, nullptr, nullptr);
  std::string name = plain ? plain : mangled;
  std::free(plain);
  constexpr std::string_view kUnnamed = "(anonymous namespace)::";
  if (const size_t at = name.find(kUnnamed); at != std::string::npos)
    name.erase(at, kUnnamed.size());
  name = name.substr(0, name.find('('));
  const size_t scope = name.rfind(':');
  return scope == std::string::npos ? name : name.substr(scope + 1);
}

// libdw needs more than a lane has.
template <class F>
void with_more_stack(F f) {
  namespace context = boost::context;
  context::fiber(std::allocator_arg, context::fixedsize_stack(size_t{1} << 20),
                 [&](context::fiber&& caller) {
                   f();
                   return std::move(caller);
                 }).resume();
}

// The functions of the interface are named by those who report.
bool is_standin(const char* file) { return file && std::strstr(file, "/include/emulated/"); }

std::string describe(uintptr_t pc) {
  Dwfl_Module* const module = dwfl_addrmodule(own_program(), pc);
  Dwarf_Addr bias = 0;
  Dwarf_Die* const unit = module ? dwfl_module_addrdie(module, pc, &bias) : nullptr;
  Dwarf_Line* const at = unit ? dwarf_getsrc_die(unit, pc - bias) : nullptr;
  if (!at) return "in " + plain_name(pc);
  Dwarf_Files* files = nullptr;
  dwarf_getsrcfiles(unit, &files, nullptr);
  int line = 0;
  dwarf_lineno(at, &line);
  const char* file = dwarf_linesrc(at, nullptr, nullptr);
  std::string text;
  // By address only the innermost is told; what it was inlined into follows from where it stands.
  Dwarf_Die *innermost = nullptr, *scopes = nullptr;
  if (dwarf_getscopes(unit, pc - bias, &innermost) <= 0) return "at " + place(file, line);
  const int count = dwarf_getscopes_die(innermost, &scopes);
  for (int i = 0; i < count; ++i) {
    const int tag = dwarf_tag(&scopes[i]);
    if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram) continue;
    if (!is_standin(file))
      text += (text.empty() ? "at " : ", called at ") + place(file, line) + " in " +
              name_of(&scopes[i]);
    if (tag == DW_TAG_subprogram) break;
    file = dwarf_filesrc(files, static_cast<size_t>(number(&scopes[i], DW_AT_call_file)), nullptr,
                         nullptr);
    line = number(&scopes[i], DW_AT_call_line);
  }
  std::free(innermost);
  std::free(scopes);
  return text;
}

}  // namespace

std::string describe_place(const void* address) {
  static std::unordered_map<const void*, std::string> known;
  std::string& text = known[address];
  if (text.empty())
    with_more_stack([&] { text = describe(reinterpret_cast<uintptr_t>(address) - 1); });
  return text;
}

bool is_same_place(const void* x, const void* y) {
  return x == y || describe_place(x) == describe_place(y);
}

std::string function_name(const void* entry) {
  std::string name;
  with_more_stack([&] { name = plain_name(reinterpret_cast<uintptr_t>(entry)); });
  return name;
}

}  // namespace cuda_emulated
