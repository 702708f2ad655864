#include "translator/common/translator.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <unordered_set>

#include "device_sim/base/nearest_name.h"
#include "translator/common/discover.h"
#include "translator/common/draft.h"
#include "translator/common/isa_list.h"
#include "translator/common/link.h"
#include "translator/elf/elf_file.h"
#include "translator/module_io.h"
#include "translator/passes/dead_values.h"
#include "translator/passes/note_accesses.h"
#include "translator/passes/optimise.h"
#include "translator/passes/renumber_slots.h"
#include "translator/passes/zero_slots.h"

namespace gpusim {
namespace {

// The code of a module's program from pc on, as far as one instruction can reach.
std::span<const uint8_t> code_at(const GuestIsa& isa, const Module& module, uint64_t pc) {
  const std::span<const uint8_t> bytes = code_from(module, pc);
  size_t size = 0;
  while (size < std::min<size_t>(isa.longest_insn, bytes.size()) && module.code.is_code(pc + size))
    size += isa.insn_align;
  return bytes.first(std::min(size, bytes.size()));
}

/// Forms blocks at some addresses and at whatever they lead to directly.
class BlockFormer {
 public:
  BlockFormer(const GuestIsa& isa, const Guise& guise, CodeAt code_at,
              std::function<bool(uint64_t)> starts_block)
      : isa_(isa),
        guise_(guise),
        code_at_(std::move(code_at)),
        starts_block_(std::move(starts_block)) {}

  void add(uint64_t pc) {
    if (!seen_.insert(pc).second) return;
    blocks_.push_back(form(pc));
    want_successors(blocks_.back());
  }
  // Only if some block leads there should it turn out to be no instruction at all.
  void add_unless_unknown(uint64_t pc) {
    if (seen_.contains(pc)) return;
    CodeBlock block = form(pc);
    if (block.unknown && block.draft.classes.size() == 1) return;
    seen_.insert(pc);
    want_successors(block);
    blocks_.push_back(std::move(block));
  }
  // Blocks by address. `exists`: no block is needed there.
  std::vector<CodeBlock> finish(const std::function<bool(uint64_t)>& exists) {
    while (!wanted_.empty()) {
      const uint64_t pc = wanted_.back();
      wanted_.pop_back();
      if (!exists(pc) && has_insn(pc)) add(pc);
    }
    std::sort(blocks_.begin(), blocks_.end(),
              [](const CodeBlock& a, const CodeBlock& b) { return a.draft.pc < b.draft.pc; });
    return std::move(blocks_);
  }

  bool has_insn(uint64_t pc) const { return bool(isa_.first_insn(pc, code_at_(pc))); }

 private:
  CodeBlock form(uint64_t pc) const {
    const auto starts = [this](uint64_t at) { return starts_block_(at) || seen_.contains(at); };
    CodeBlock block = form_block(isa_, pc, code_at_, starts, guise_);
    remove_sink_writes(isa_, block.draft);
    return block;
  }
  void want_successors(const CodeBlock& b) {
    if (b.has_target()) want(b.draft.end.taken_pc);
    if (!b.draft.end.present || b.falls_through()) want(b.next_pc);
  }
  void want(uint64_t pc) {
    if ((pc & (isa_.insn_align - 1)) == 0 && !seen_.contains(pc)) wanted_.push_back(pc);
  }

  const GuestIsa& isa_;
  Guise guise_;
  CodeAt code_at_;
  std::function<bool(uint64_t)> starts_block_;
  std::vector<CodeBlock> blocks_;
  std::unordered_set<uint64_t> seen_;
  std::vector<uint64_t> wanted_;
};

uint32_t cpu_number(const GuestIsa& isa, const std::string& name) {
  if (const std::optional<uint32_t> found = find_cpu(isa, name)) return *found;
  std::string known;
  std::vector<std::string_view> names;
  for (const GuestCpu& cpu : isa.cpus) {
    known += (known.empty() ? "" : ", ") + std::string(cpu.name);
    names.push_back(cpu.name);
  }
  throw Error("no CPU " + name + " for ISA " + isa.name + did_you_mean(name, names) +
              "; there are " + known);
}

std::vector<CodeBlock> form_all_blocks(const GuestIsa& isa, const Guise& guise,
                                       const CodeImage& image) {
  const auto code_at = [&](uint64_t pc) { return image.code_at(pc); };
  const auto starts_block = [&](uint64_t pc) {
    return image.is_code(pc) && (image.flags_at(pc) & kLeader);
  };
  BlockFormer former(isa, guise, code_at, starts_block);
  for (uint64_t pc = image.base; pc < image.end(); pc += image.step()) {
    const uint8_t flags = image.flags_at(pc);
    if (!(flags & kCode) || !(flags & kLeader) || !former.has_insn(pc)) continue;
    if (flags & kReached)
      former.add(pc);
    else if (!(flags & kData))
      former.add_unless_unknown(pc);
  }
  return former.finish([](uint64_t) { return false; });
}

void list_unknown(const CodeImage& image, const std::vector<CodeBlock>& blocks, Module& module) {
  for (const CodeBlock& b : blocks) {
    if (!b.unknown) continue;
    const uint64_t pc = b.insn_offsets.empty() ? b.next_pc - image.step()
                                               : b.draft.pc + b.insn_offsets.end()[-2];
    if (image.flags_at(pc) & kReached) module.unknown.push_back(pc);
  }
}

void fill_code_map(const CodeImage& image, CodeMap& code) {
  code.text_base = image.base;
  code.pc_shift = image.pc_shift;
  code.uop_at.assign(image.flags.size(), kNoUop);
  code.insn_class.resize(image.flags.size());
  for (size_t i = 0; i < image.flags.size(); ++i)
    code.insn_class[i] =
        image.flags[i] & kCode ? static_cast<uint8_t>(InsnClass::kOther) : CodeMap::kNotCode;
}

bool has_syscalls(const std::vector<CodeBlock>& blocks) {
  return std::any_of(blocks.begin(), blocks.end(), [](const CodeBlock& b) {
    return b.draft.end.present && b.draft.uops.back().op == Op::service;
  });
}

}  // namespace

Module translate_elf(std::span<const uint8_t> bytes, const std::string& name,
                     const TranslateOptions& options) {
  ElfFile elf = read_elf(bytes, name);
  const GuestIsa& isa = *elf.isa;
  const uint32_t cpu = cpu_number(isa, options.cpu);
  const CodeImage image = discover_code(elf, cpu);

  Module module;
  module.isa = isa.name;
  module.cpu = isa.cpus[cpu].name;
  module.entry = elf.entry;
  module.segments = std::move(elf.segments);
  module.symbols = std::move(elf.symbols);
  module.phdr_address = elf.phdr_address;
  module.phdr_count = elf.phdr_count;
  module.phdr_entry_size = elf.phdr_entry_size;
  fill_code_map(image, module.code);

  std::vector<CodeBlock> blocks = form_all_blocks(isa, {cpu, options.simulated_time}, image);
  list_unknown(image, blocks, module);
  if (options.optimise) {
    const SlotSet zero_slots = find_zero_slots(isa, blocks);
    for (CodeBlock& b : blocks) replace_zero_slots(isa, zero_slots, b.draft);
  }
  // From the blocks as translated: a block that is added later may need what a pass removed here.
  const SlotMap slots = make_slot_map(isa, used_slots(blocks), has_syscalls(blocks));
  if (options.optimise) {
    std::unordered_set<uint64_t> functions{module.entry};
    for (const Symbol& s : module.symbols)
      if (s.is_function) functions.insert(s.address);
    const auto is_function = [&](uint64_t pc) { return functions.contains(pc); };
    optimise_blocks(isa, {.whole_program = true, .is_function = is_function}, blocks);
  }
  if (options.journal)
    for (CodeBlock& b : blocks) note_accesses(isa, b.draft);
  for (CodeBlock& b : blocks)
    if (!renumber_slots(slots, b)) throw std::logic_error("a pass uses a slot that nothing did");
  describe_slots(isa, slots, module);
  link_blocks(std::move(blocks), module);
  return module;
}

Module translate_file(const std::string& path, const TranslateOptions& options) {
  return translate_elf(read_file(path), path, options);
}

Module load_program(const std::string& path, const TranslateOptions& options) {
  const std::vector<uint8_t> bytes = read_file(path);
  if (!is_module(bytes)) return translate_elf(bytes, path, options);
  Module module = read_module(bytes, path);
  if (!options.cpu.empty() && options.cpu != module.cpu)
    throw Error(path + ": a module for CPU " + module.cpu + ", not " + options.cpu +
                ": translate the program again with gpusim translate --cpu " + options.cpu);
  if (!options.journal && !options.simulated_time) return module;
  Translator again(std::move(module), options);
  again.translate_again();
  return again.module();
}

std::vector<uint8_t> read_file(const std::string& path, uint64_t limit_bytes) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw Error(path + ": " + std::strerror(errno));
  std::vector<uint8_t> bytes;
  char chunk[1 << 16];
  while (in.read(chunk, sizeof chunk), in.gcount() > 0) {
    bytes.insert(bytes.end(), chunk, chunk + in.gcount());
    if (bytes.size() > limit_bytes)
      throw Error(path + ": longer than " + std::to_string(limit_bytes) + " bytes: not a program");
  }
  if (in.bad()) throw Error(path + ": can't be read: " + std::strerror(errno));
  return bytes;
}

Translator::Translator(Module module, const TranslateOptions& options)
    : module_(std::move(module)), options_(options), isa_(find_isa(module_.isa)) {
  if (!isa_) throw Error("no translator for ISA '" + module_.isa + "'");
  cpu_ = cpu_number(*isa_, module_.cpu);
  renumbering_ = recover_slot_map(*isa_, module_);
}

Translator::Place Translator::block_at(uint64_t pc) {
  if (!module_.code.is_aligned(pc)) return {.fault = Fault::kFetchAlignment};
  if (const uint32_t found = find_block(module_.code, pc); found != kNoUop) return {.uop = found};

  const auto code = [this](uint64_t at) { return code_at(*isa_, module_, at); };
  const auto exists = [this](uint64_t at) { return find_block(module_.code, at) != kNoUop; };
  BlockFormer former(*isa_, {cpu_, options_.simulated_time}, code, exists);
  if (!former.has_insn(pc)) return {.fault = Fault::kFetchAccess};
  former.add(pc);
  add_blocks(former.finish(exists));
  growth_.push_back(pc);
  return {.uop = find_block(module_.code, pc), .is_new = true};
}

void Translator::make_flags_exact() {
  if (exact_flags_) return;
  exact_flags_ = true;
  growth_.push_back(kExactFlags);
  translate_again();
}

void Translator::translate_again() {
  std::fill(module_.code.uop_at.begin(), module_.code.uop_at.end(), kNoUop);
  std::unordered_set<uint64_t> starts;
  for (const Block& b : module_.blocks)
    if (b.insn_count != 0) starts.insert(b.pc);  // else it stands for a bad target
  const auto code = [this](uint64_t at) { return code_at(*isa_, module_, at); };
  BlockFormer former(*isa_, {cpu_, options_.simulated_time}, code,
                     [&](uint64_t pc) { return starts.contains(pc); });
  for (const uint64_t pc : starts) former.add(pc);
  add_blocks(former.finish([](uint64_t) { return false; }));
}

void Translator::grow_again(std::span<const uint64_t> growth) {
  for (const uint64_t pc : growth) {
    if (pc == kExactFlags)
      make_flags_exact();
    else
      block_at(pc);
  }
}

void Translator::add_blocks(std::vector<CodeBlock> blocks) {
  // Slots that the module lacks have always been zero.
  SlotSet zero_slots;
  for (size_t s = 0; s < renumbering_.size(); ++s)
    zero_slots.set(s, renumbering_[s] == kNoSlot && !isa_->roles.is_temp(static_cast<Slot>(s)) &&
                          s != isa_->roles.sink);
  for (CodeBlock& b : blocks) replace_zero_slots(*isa_, zero_slots, b.draft);
  if (options_.optimise) optimise_blocks(*isa_, {.exact_flags = exact_flags_}, blocks);
  for (CodeBlock& b : blocks) {
    if (options_.journal) note_accesses(*isa_, b.draft);
    renumber_slots(renumbering_, b);
  }
  link_blocks(std::move(blocks), module_);
}

std::span<const uint8_t> code_from(const Module& module, uint64_t pc) {
  for (const Segment& s : module.segments)
    if (pc >= s.address && pc - s.address < s.bytes.size())
      return std::span(s.bytes).subspan(pc - s.address);
  return {};
}

GuestInsn instruction_at(const Module& module, uint64_t pc) {
  const GuestIsa* isa = find_isa(module.isa);
  return isa ? isa->first_insn(pc, code_from(module, pc)) : GuestInsn{};
}

const Symbol* find_symbol(const Module& module, const std::string& name) {
  const auto found = std::find_if(module.symbols.begin(), module.symbols.end(),
                                  [&](const Symbol& s) { return s.name == name; });
  return found == module.symbols.end() ? nullptr : &*found;
}

const Symbol& require_symbol(const Module& module, const std::string& name,
                             const std::string& what) {
  if (const Symbol* found = find_symbol(module, name)) return *found;
  std::vector<std::string_view> names;
  for (const Symbol& s : module.symbols) names.push_back(s.name);
  throw Error(what + ": the program has no symbol " + name + did_you_mean(name, names));
}

}  // namespace gpusim
