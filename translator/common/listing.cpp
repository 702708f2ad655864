#include "translator/common/listing.h"

#include <capstone/capstone.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <set>
#include <type_traits>

#include "device_sim/uir/check_fields.h"
#include "translator/common/isa_list.h"
#include "translator/common/link.h"
#include "translator/common/translator.h"
#include "translator/passes/operands.h"

namespace gpusim {
namespace {

// Capstone, loaded when a text is needed: the dynamic linker has 77,000 addresses to put into its
// tables, 1.3 ms that no run would otherwise need.
struct Capstone {
  Capstone() {
    void* const library =
        dlopen(("libcapstone.so." + std::to_string(CS_API_MAJOR)).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
      return function != nullptr;
    };
    is_there = find(open, "cs_open") && find(close, "cs_close") && find(disasm, "cs_disasm") &&
               find(free, "cs_free");
  }
  static const Capstone& get() {
    static const Capstone library;
    return library;
  }
  decltype(&cs_open) open = nullptr;
  decltype(&cs_close) close = nullptr;
  decltype(&cs_disasm) disasm = nullptr;
  decltype(&cs_free) free = nullptr;
  bool is_there = false;
};

class Disassembler {
 public:
  explicit Disassembler(const Module& module) {
    isa_ = find_isa(module.isa);
    open_ = isa_ && isa_->capstone_arch != GuestIsa::kNoCapstone && Capstone::get().is_there &&
            Capstone::get().open(static_cast<cs_arch>(isa_->capstone_arch),
                                 static_cast<cs_mode>(isa_->capstone_mode), &handle_) == CS_ERR_OK;
  }
  Disassembler(const Disassembler&) = delete;
  Disassembler& operator=(const Disassembler&) = delete;
  ~Disassembler() {
    if (open_) Capstone::get().close(&handle_);
  }

  std::string text(const GuestInsn& i) const {
    cs_insn* insn = nullptr;
    std::string out;
    if (open_ &&
        Capstone::get().disasm(handle_, i.bytes.data(), i.bytes.size(), i.pc, 1, &insn) == 1)
      out = insn->op_str[0] ? fmt::format("{} {}", insn->mnemonic, insn->op_str) : insn->mnemonic;
    if (insn) Capstone::get().free(insn, 1);
    if (!out.empty()) return out;
    out = isa_ ? isa_->text(i) : "";
    if (!out.empty()) return out;
    return fmt::format("{} {}", i.bytes.size() == 4 ? ".word" : i.bytes.size() == 2 ? ".short" : ".insn",
                       encoding_text(i));
  }

 private:
  const GuestIsa* isa_ = nullptr;
  csh handle_ = 0;
  bool open_ = false;
};

std::string slot_text(const Module& m, int slot) {
  for (const SlotName& n : m.slot_names)
    if (n.slot == slot) return n.name;
  return fmt::format("s{}", slot);
}

std::string place_text(const Module& m, uint32_t uop) {
  if (uop >= m.uops.size()) return "?";
  const Block& b = m.blocks[m.uop_block[uop]];
  if (b.first_uop == uop) return fmt::format("{:x}", b.pc);
  return fmt::format("u{}", uop);
}

class Listing {
 public:
  explicit Listing(const Module& module) : m_(module), disassembler_(module) {
    for (uint32_t i = 0; i < m_.blocks.size(); ++i) order_.push_back(i);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](uint32_t a, uint32_t b) { return m_.blocks[a].pc < m_.blocks[b].pc; });
    // Micro-ops outside of a block's own range: links and what one way out of the block needs.
    for (uint32_t i = 0; i < m_.uops.size(); ++i) {
      const Block& b = m_.blocks[m_.uop_block[i]];
      if (i < b.first_uop || i - b.first_uop >= b.uop_count) outside_.insert({m_.uop_block[i], i});
    }
  }

  void visit(uint64_t begin, uint64_t end, const std::function<void(const ListedBlock&)>& visitor) {
    size_t next_symbol = 0;
    for (const uint32_t number : order_) {
      const Block& b = m_.blocks[number];
      if (b.insn_count == 0 || b.pc < begin || b.pc >= end) continue;
      ListedBlock listed = list(number);
      while (next_symbol < m_.symbols.size() && m_.symbols[next_symbol].address < b.pc)
        ++next_symbol;
      for (; next_symbol < m_.symbols.size() && m_.symbols[next_symbol].address == b.pc;
           ++next_symbol)
        if (m_.symbols[next_symbol].is_function)
          listed.functions.push_back(m_.symbols[next_symbol].name);
      visitor(listed);
    }
  }

 private:
  ListedBlock list(uint32_t number) const {
    const Block& b = m_.blocks[number];
    ListedBlock listed{.number = number, .pc = b.pc, .uop_count = b.uop_count};
    uint32_t u = b.first_uop;
    const uint32_t uops_end = b.first_uop + b.uop_count;
    for (uint32_t i = 0; i < b.insn_count; ++i) {
      ListedInstruction insn{.pc = insn_pc(m_, b, i)};
      const GuestInsn guest = instruction_at(m_, insn.pc);
      insn.encoding = encoding_text(guest);
      insn.text = guest ? disassembler_.text(guest) : "?";
      for (; u < uops_end && m_.uop_insn[u] == i; ++u)
        insn.uops.push_back(uop_text(m_, m_.uops[u]));
      listed.instructions.push_back(std::move(insn));
    }
    for (; u < uops_end; ++u) listed.end_uops.push_back(uop_text(m_, m_.uops[u]));
    for (auto it = outside_.lower_bound({number, 0}); it != outside_.end() && it->first == number;
         ++it)
      listed.link_uops.push_back(
          fmt::format("u{}: {}", it->second, uop_text(m_, m_.uops[it->second])));
    return listed;
  }

  const Module& m_;
  Disassembler disassembler_;
  std::vector<uint32_t> order_;
  std::set<std::pair<uint32_t, uint32_t>> outside_;  // block, micro-op
};

void print_block(std::ostream& out, const ListedBlock& block) {
  for (const std::string& function : block.functions)
    out << fmt::format("\n{:016x} <{}>:\n", block.pc, function);
  out << fmt::format("block {} at {:x}: {} instructions, {} micro-ops\n", block.number, block.pc,
                     block.instructions.size(), block.uop_count);
  for (const ListedInstruction& insn : block.instructions) {
    std::string left = fmt::format("  {:8x}: {:<8}  {:<36}", insn.pc,
                                   std::string_view(insn.encoding).substr(2), insn.text);
    if (insn.uops.empty()) out << left << '\n';
    for (const std::string& uop : insn.uops) {
      out << left << "| " << uop << '\n';
      left.assign(left.size(), ' ');
    }
  }
  const std::string left(56, ' ');
  for (const std::string& uop : block.end_uops) out << left << "| " << uop << '\n';
  for (const std::string& uop : block.link_uops) out << left << "| " << uop << '\n';
}

}  // namespace

std::string uop_text(const Module& m, const Uop& u) {
  const OpInfo& info = op_info(u.op);
  const ShapeInfo shape = shape_info(info.shape);
  std::string out = info.name;
  const char* separator = " ";
  const auto add = [&](const std::string& text) {
    out += separator + text;
    separator = ", ";
  };
  for_each_operand(u, [&](Slot s, uint8_t, uint8_t) { add(slot_text(m, s)); });
  const auto add_imm = [&](uint64_t v) {
    add(v < 10 ? fmt::format("{}", v) : fmt::format("{:#x}", v));
  };
  if (shape.ends_block) {
    if (u.op == Op::br_cond)
      add(fmt::format("{:#06x}", u.imm16()));
    else if (info.shape == Shape::kBrAI)
      add(fmt::format("{}", static_cast<int16_t>(u.imm16())));
    else if (u.aux)
      add(fmt::format("aux={}", u.aux));
    if (shape.has_target) out += " -> " + place_text(m, u.target());
    return out;
  }
  switch (info.shape) {
    case Shape::kDI:
    case Shape::kDAI:
    case Shape::kDABI:
    case Shape::kDABCI:
    case Shape::kSelCmpI:
    case Shape::kLdI:
    case Shape::kLdX:
    case Shape::kLdW:
    case Shape::kStI:
    case Shape::kStX:
    case Shape::kStW:
    case Shape::kAlign:
      add_imm(u.imm);
      break;
    default:
      if (u.imm) add_imm(u.imm);
      break;
  }
  if (fields::takes_e(info.fields)) {
    if (u.imm16()) add(fmt::format("imm16={:#x}", u.imm16()));
    return out;
  }
  if (u.aux) add(fmt::format("aux={}", u.aux));
  if (info.fields == Fields::kByHelper && !shape.fp_state) add(fmt::format("helper={}", u.e));
  return out;
}

void for_each_listed_block(const Module& module, const ListingOptions& options,
                           const std::function<void(const ListedBlock&)>& visit) {
  uint64_t begin = 0, end = ~uint64_t{0};
  if (!options.symbol.empty()) {
    const Symbol* symbol = &require_symbol(module, options.symbol, "--symbol");
    begin = symbol->address;
    // Assembly functions often have no size: up to the next function then.
    end = begin + symbol->size_bytes;
    if (symbol->size_bytes == 0) {
      end = ~uint64_t{0};
      for (const Symbol& s : module.symbols)
        if (s.is_function && s.address > begin) end = std::min(end, s.address);
    }
  }
  Listing(module).visit(begin, end, visit);
}

void print_listing(std::ostream& out, const Module& module, const ListingOptions& options) {
  for_each_listed_block(module, options,
                        [&](const ListedBlock& block) { print_block(out, block); });
}

std::string missing_disassembler(const Module& module) {
  const GuestIsa* isa = find_isa(module.isa);
  if (!isa || isa->capstone_arch == GuestIsa::kNoCapstone || Capstone::get().is_there) return {};
  return fmt::format(
      "libcapstone.so.{} cannot be loaded (Debian package libcapstone{}): instructions are spelled "
      "by gpusim's own decoder, with fewer operands",
      CS_API_MAJOR, CS_API_MAJOR);
}

namespace {

// A function of unknown size ends with the code that it is in.
bool are_in_one_piece(const Module& module, uint64_t symbol, uint64_t address) {
  if (symbol == address) return true;
  const auto piece_of = [&](uint64_t a) -> const void* {
    for (const Segment& s : module.segments)
      if (a >= s.address && a - s.address < s.size_bytes) return &s;
    return shared_object_at(module, a);
  };
  return piece_of(symbol) == piece_of(address);
}

}  // namespace

const SharedObject* shared_object_at(const Module& module, uint64_t address) {
  const auto behind =
      std::ranges::upper_bound(module.shared_objects, address, {}, &SharedObject::begin);
  if (behind == module.shared_objects.begin() || !std::prev(behind)->contains(address))
    return nullptr;
  return &*std::prev(behind);
}

const Symbol* symbol_at(const Module& module, uint64_t address) {
  auto at = std::upper_bound(module.symbols.begin(), module.symbols.end(), address,
                             [](uint64_t a, const Symbol& s) { return a < s.address; });
  const Symbol* best = nullptr;
  for (int tries = 0; at != module.symbols.begin() && tries < 64; ++tries) {
    --at;
    const bool covers = at->size_bytes == 0
                            ? at->is_function && are_in_one_piece(module, at->address, address)
                            : address - at->address < at->size_bytes;
    if (best && at->address != best->address) break;
    if (covers) best = &*at;
  }
  return best;
}

std::string symbolize(const Module& module, uint64_t address) {
  const Symbol* const best = symbol_at(module, address);
  if (!best) return fmt::format("{:#x}", address);
  if (address == best->address) return best->name;
  return fmt::format("{}+{:#x}", best->name, address - best->address);
}

std::string describe_instruction(const Module& module, uint64_t pc) {
  const GuestInsn insn = instruction_at(module, pc);
  return insn ? Disassembler(module).text(insn) : "no instruction";
}

std::string encoding_text(const GuestInsn& insn) {
  const size_t size = insn.bytes.size();
  if (size == 0 || size == 4) return fmt::format("{:#010x}", insn.word());
  if (size == 2) return fmt::format("{:#06x}", insn.word());
  std::string text = "0x";
  for (const uint8_t byte : insn.bytes) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace gpusim
