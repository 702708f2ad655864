// What a PTX text says, before anything is translated.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "translator/ptx/type.h"

namespace gpusim::ptx {

struct Row;

struct Operand {
  enum class Kind : uint8_t {
    kRegister,  // `reg`; negated: !%p1
    kInteger,   // value
    kFloat,     // value: bits of a float of `bits`
    kSymbol,    // a variable, a function or a label: symbol + value
    kSpecial,   // %tid.x: its name in `symbol`
    kAddress,   // [elements[0] + value], elements[0] a register, a symbol or an integer
    kVector,    // {…}: elements
    kPair,      // p|q: two elements
    kSink,      // _
  };
  Kind kind = Kind::kInteger;
  uint8_t bits = 64;
  bool is_negated = false;
  // %r1.b2, %r1.h0: how many of the register's bits, from where on. 0: all.
  uint8_t part_bits = 0, part_at = 0;
  uint32_t reg = 0;
  uint64_t value = 0;
  std::string symbol{};
  std::vector<Operand> elements{};

  bool is(Kind k) const { return kind == k; }
};

inline constexpr uint32_t kNoRegister = ~0u;

struct Location {  // of the source that the text was made from
  uint32_t file = 0, line = 0;
  uint32_t caller =
      0;  // while it is parsed: where it was put in its caller's place, counted from 1
};

struct Instruction {
  uint32_t line = 0;  // of the text
  Location location{};
  std::string opcode{};  // with its modifiers as written: "ld.global.f32"
  std::string base{};    // "ld"
  std::vector<std::string> modifiers{};
  uint32_t guard = kNoRegister;
  bool guard_is_negated = false;
  std::vector<Operand> operands{};
  // What the row that takes it found out.
  const Row* row = nullptr;
  std::vector<Type> types{};  // in the order in which they are written
  bool counts = true;         // false: a further part of the one before
  uint8_t more_units = 0;     // of code addresses, for a block that begins behind it

  bool has(std::string_view modifier) const {
    for (const std::string& m : modifiers)
      if (m == modifier) return true;
    return false;
  }
  Type type(size_t i = 0) const { return i < types.size() ? types[i] : Type{}; }
};

// One of 128 bits holds the low half; the next register of the function holds the high one.
struct Register {
  std::string name{};
  Type type{};
};

enum class Linkage : uint8_t { kLocal, kVisible, kWeak, kExtern, kCommon };

// A part of an initialiser that is an address.
struct AddressPart {
  uint64_t offset = 0;
  uint32_t bytes = 8;
  std::string symbol{};
  int64_t addend = 0;
};

struct Variable {
  std::string name{};
  Space space = Space::kGlobal;
  Linkage linkage = Linkage::kLocal;
  Type type{};
  uint32_t align = 1;
  uint64_t size = 0;             // bytes
  bool is_unsized = false;       // .extern .shared x[]
  std::vector<uint8_t> bytes{};  // of the initialiser; the rest is zero
  std::vector<AddressPart> addresses{};
  uint32_t line = 0;
};

// What a .callprototype says.
struct Prototype {
  std::vector<Variable> returns{}, params{};
};

struct Function {
  std::string name{};
  bool is_entry = false, has_body = false;
  Linkage linkage = Linkage::kLocal;
  uint32_t line = 0;
  std::vector<Variable> returns{}, params{};
  std::vector<Register> registers{};
  std::vector<Variable> variables{};  // of the body: .local, .shared, .param
  std::vector<Instruction> body{};
  std::map<std::string, uint32_t> labels{};  // to the index of an instruction, or the body's size
  std::map<std::string, std::vector<std::string>> branch_targets{}, call_targets{};
  std::map<std::string, Prototype> prototypes{};
  std::string trouble{};  // the first thing in the body that is not supported, with its place
  uint32_t max_threads[3] = {0, 0, 0};       // .maxntid; 0: not given
  uint32_t required_threads[3] = {0, 0, 0};  // .reqntid
  uint32_t cluster[3] = {0, 0, 0};           // .reqnctapercluster
  uint32_t max_cluster_rank = 0;             // .maxclusterrank
  bool is_explicit_cluster = false;
};

struct Unit {
  std::string origin{};
  std::string target{};  // "sm_80"
  std::vector<Variable> variables{};
  std::vector<Function> functions{};
  std::map<uint32_t, std::string> files{};  // of .file
};

/// Throws Error: file, line, what is wrong.
Unit parse(std::string_view text, const std::string& origin);

}  // namespace gpusim::ptx
