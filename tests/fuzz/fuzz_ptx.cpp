// Any text as PTX: refused with gpusim::Error, or micro-ops that stay within their module.
// Half of the mutations put an instruction of the table, with operands from the text, in place of
// another: bytes alone hardly ever make one.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "device_sim/base/error.h"
#include "device_sim/uir/check_fields.h"
#include "translator/common/op_shape.h"
#include "translator/passes/operands.h"
#include "translator/ptx/program.h"
#include "translator/ptx/rows.h"
#include "translator/ptx/translate.h"
#include "translator/ptx/unit.h"

using namespace gpusim;
using namespace gpusim::ptx;

namespace {

using Random = std::minstd_rand;

template <class T>
const T& one_of(const std::vector<T>& list, Random& random) {
  return list[random() % list.size()];
}

std::vector<std::string> words_between(std::string_view text, char separator) {
  std::vector<std::string> words;
  std::istringstream in{std::string(text)};
  for (std::string word; std::getline(in, word, separator);)
    if (!word.empty()) words.push_back(word);
  return words;
}

// "%r1" and the like.
std::vector<std::string> registers_in(std::string_view text) {
  std::vector<std::string> names;
  for (size_t at = text.find('%'); at != std::string_view::npos; at = text.find('%', at + 1)) {
    const size_t end = text.find_first_of(" \t\n,;:[]{}()+<>|", at);
    names.emplace_back(text.substr(at, end - at));
  }
  if (names.empty()) names.emplace_back("%r0");
  return names;
}

class Mutation {
 public:
  Mutation(std::string_view text, Random& random)
      : registers_(registers_in(text)), random_(random) {}

  // See rows.h for what a row's syntax and operands say.
  std::string instruction() {
    static const std::vector<const Row*> rows = all_rows();
    const Row& row = *one_of(rows, random_);
    std::string text, type;
    for (const std::string& group : words_between(row.syntax, ' ')) {
      if (text.empty()) {
        text = group;
        continue;
      }
      if (group[0] == '{' && random_() % 2 == 0) continue;
      std::string choice = one_of(words_between(group, '|'), random_);
      std::erase_if(choice, [](char c) { return std::strchr("{}()[].", c) != nullptr; });
      text += "." + choice;
      if (group[0] == '.' && type.empty()) type = choice;
    }
    const char* between = " ";
    for (const std::string& code : words_between(row.operands, ' ')) {
      text += between + (random_() % 8 == 0 ? anything() : fitting(code, type));
      between = ", ";
    }
    return text;
  }

 private:
  std::string any() {
    static const std::vector<std::string> constants = {"0",          "1",
                                                       "-1",         "31",
                                                       "32",         "0xffffffffffffffff",
                                                       "0f3F800000", "0d7FF0000000000000",
                                                       "_",          "var",
                                                       "near",       "param",
                                                       "%tid.x",     "%clock64",
                                                       "LABEL",      "callee"};
    return random_() % 4 == 0 ? one_of(constants, random_) : one_of(registers_, random_);
  }

  std::string list(const std::string& first) {
    std::string text = "{" + first;
    for (unsigned more = random_() % 8; more != 0; --more) text += ", " + any();
    return text + "}";
  }

  std::string anything() {
    switch (random_() % 6) {
      case 0:
        return "[" + any() + "]";
      case 1:
        return list(any());
      case 2:
        return any() + "|" + any();
      default:
        return any();
    }
  }

  // A register of such a type, as seed_kernel.ptx names them.
  std::string of_type(const std::string& type, int times = 1) {
    const size_t digits = type.find_first_of("0123456789");
    int bits = digits == std::string::npos ? 1 : std::atoi(type.c_str() + digits) * times;
    if (type.ends_with("x2")) bits *= 2;
    const bool is_float = type[0] == 'f' && random_() % 2 == 0;
    const char* const name = bits == 1    ? "%p"
                             : bits <= 16 ? "%h"
                             : bits == 32 ? (is_float ? "%f" : "%r")
                             : bits == 64 ? (is_float ? "%fd" : "%rd")
                                          : "%q";
    return name + std::to_string(random_() % 4);
  }

  std::string fitting(const std::string& code, const std::string& type) {
    switch (code[0]) {
      case 'd':
      case 's':
        if (code == "dp" || code == "dpq" || code == "sp") return of_type("pred");
        if (code == "dw" || code == "sw") return of_type(type, 2);
        if (code == "dv" || code == "sv" || code == "dx" || code == "sx")
          return list(of_type(type));
        if (code.size() > 2) return of_type("b" + code.substr(1));
        return of_type(type.empty() ? "b32" : type);
      case 'l':
      case 't':
        return random_() % 4 == 0 ? list(of_type(type)) : of_type(type.empty() ? "b32" : type);
      case 'm':
        return code != "m" ? any()
                           : "[" + (random_() % 3 == 0 ? any() : of_type("b64")) + "+" +
                                 std::to_string(static_cast<int>(random_() % 64) - 8) + "]";
      case 'n':
      case 'i':
        return std::to_string(random_() % 40);
      case '_':
        return "_";
      default:
        return code == "lab" ? "LABEL" : anything();
    }
  }

  std::vector<std::string> registers_;
  Random& random_;
};

// What backends rely on. translator/module_check.cpp has it for module files.
void check(const Module& m) {
  const auto require = [&](bool ok, size_t uop, const char* what) {
    if (ok) return;
    std::fprintf(stderr, "micro-op %zu, %s: %s\n", uop, op_info(m.uops[uop].op).name, what);
    std::abort();
  };
  for (size_t i = 0; i < m.uops.size(); ++i) {
    const Uop& u = m.uops[i];
    for_each_operand(u, [&](Slot s, uint8_t reads, uint8_t writes) {
      require(s + std::max({1, int{reads}, int{writes}}) <= static_cast<int>(m.slot_count), i,
              "register");
    });
    require(has_valid_fields(u), i, "immediates");
    const ShapeInfo& shape = shape_of(u.op);
    require(!shape.ends_block || u.block() < m.blocks.size(), i, "block");
    require(!shape.has_target || u.target() < m.uops.size(), i, "target");
    require(!shape.falls_through || i + 1 < m.uops.size(), i, "what follows");
  }
}

}  // namespace

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  Random random(seed);
  const std::string text(reinterpret_cast<const char*>(data), size);
  const size_t body = text.find('{');
  if (random() % 2 == 0 || body == std::string::npos) return LLVMFuzzerMutate(data, size, most);
  const size_t from = text.find(';', body + random() % (size - body));
  if (from == std::string::npos) return LLVMFuzzerMutate(data, size, most);
  const size_t to = random() % 3 == 0 ? from : text.find_first_of(";}", from + 1);
  const std::string changed = text.substr(0, from + 1) + "\n" +
                              Mutation(text, random).instruction() +
                              (to == std::string::npos ? ";"
                               : to == from            ? ";" + text.substr(to + 1)
                                                       : text.substr(to));
  const size_t length = std::min(changed.size(), most);
  std::memcpy(data, changed.data(), length);
  return length;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    std::vector<Unit> units;
    units.push_back(parse(text, "fuzz"));
    const Program program = link_units(std::move(units));
    Places places;  // nothing runs: any addresses do
    uint64_t at = 0x10000;
    for (const Variable& v : program.variables) places[v.name] = {v.space, at += v.size + 256};
    for (const std::string& name : program.addressed) places[name] = {Space::kGlobal, at += 256};
    for (const Function* kernel : program.kernels)
      places[kernel->name] = {Space::kGlobal, at += 256};
    for (const Function* kernel : program.kernels)
      for (const Notes notes : {Notes::kNone, Notes::kChecks, Notes::kSteps}) {
        KernelCode code;
        try {
          code = translate_kernel(*kernel, program.functions, places, program.shared, notes);
        } catch (const Error&) {
          continue;
        }
        check(code.module);
      }
  } catch (const Error&) {
  }
  return 0;
}
