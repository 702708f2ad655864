#include "translator/common/translator.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>

#include "device_sim/base/file.h"
#include "device_sim/base/nearest_name.h"
#include "translator/common/block_former.h"
#include "translator/common/discover.h"
#include "translator/common/draft.h"
#include "translator/common/isa_list.h"
#include "translator/common/link.h"
#include "translator/common/on_demand.h"
#include "translator/elf/elf_file.h"
#include "translator/module_io.h"
#include "translator/passes/dead_values.h"
#include "translator/passes/flags_liveness.h"
#include "translator/passes/note_accesses.h"
#include "translator/passes/optimise.h"
#include "translator/passes/renumber_slots.h"
#include "translator/passes/sync_code.h"
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
    const uint64_t pc =
        b.insn_offsets.empty() ? b.next_pc - image.step() : b.draft.pc + b.insn_offsets.end()[-2];
    if (image.flags_at(pc) & kReached) module.unknown.push_back(pc);
  }
}

CodeMap lay_out_code(const ElfFile& elf) {
  CodeMap code;
  code.text_base = elf.code.front().begin;
  code.pc_shift = elf.isa->pc_shift();
  const uint64_t units = (elf.code.back().end - code.text_base) >> code.pc_shift;
  code.uop_at.assign(units, kNoUop);
  code.insn_class.assign(units, CodeMap::kNotCode);
  for (const AddressRange& r : elf.code)
    std::fill(code.insn_class.begin() + static_cast<ptrdiff_t>(code.unit_of(r.begin)),
              code.insn_class.begin() + static_cast<ptrdiff_t>(code.unit_of(r.end)),
              static_cast<uint8_t>(InsnClass::kOther));
  return code;
}

// All but the blocks. Takes what it needs out of the file.
Module make_module(ElfFile& elf, uint32_t cpu, CodeMap code) {
  Module module;
  module.isa = elf.isa->name;
  module.cpu = elf.isa->cpus[cpu].name;
  module.entry = elf.entry;
  module.segments = std::move(elf.segments);
  module.symbols = std::move(elf.symbols);
  module.phdr_address = elf.phdr_address;
  module.phdr_count = elf.phdr_count;
  module.phdr_entry_size = elf.phdr_entry_size;
  module.program_entry = elf.program_entry;
  module.interpreter_base = elf.interpreter_base;
  module.code = std::move(code);
  return module;
}

bool notes_accesses(const TranslateOptions& options) { return options.journal && options.accesses; }

NoteOptions notes_of(const TranslateOptions& options, std::span<const NotedFunction> functions) {
  return {.accesses = options.accesses,
          .clocks = options.order_only,
          .stamps = options.stamps,
          .stack_pointers = options.stack_pointers,
          .exchanges = true,
          .functions = functions};
}

std::vector<NotedFunction> find_noted(const TranslateOptions& options, const Module& module) {
  std::vector<NotedFunction> found;
  if (options.functions.empty()) return found;
  for (const Symbol& symbol : module.symbols) {
    const std::string_view name = name_of_whole(symbol.name);
    for (const NotedName& noted : options.functions)
      if (symbol.is_function && name == noted.name)
        found.push_back({symbol.address, symbol.address + symbol.size_bytes, noted.arguments});
  }
  std::ranges::sort(found, {}, &NotedFunction::begin);
  return found;
}

std::unique_ptr<SyncCode> find_sync_code(const TranslateOptions& options, const Module& module) {
  if (!options.journal || !options.order_only) return nullptr;
  return std::make_unique<SyncCode>(module, options.order_functions);
}

bool has_syscalls(const std::vector<CodeBlock>& blocks) {
  return std::any_of(blocks.begin(), blocks.end(), [](const CodeBlock& b) {
    return b.draft.end.present && b.draft.uops.back().op == Op::service;
  });
}

// Of a whole program. A function may turn out to belong to a loop after some of its blocks were
// looked at.
std::vector<bool> find_noted_blocks(const TranslateOptions& options, const Module& module,
                                    const std::vector<CodeBlock>& blocks) {
  const std::unique_ptr<SyncCode> sync_code = find_sync_code(options, module);
  std::vector<bool> is_noted(blocks.size(), sync_code == nullptr);
  if (!sync_code) return is_noted;
  const auto block_at = [&](uint64_t pc) -> std::optional<CodeBlock> {
    const auto found =
        std::ranges::lower_bound(blocks, pc, {}, [](const CodeBlock& b) { return b.draft.pc; });
    if (found == blocks.end() || found->draft.pc != pc) return std::nullopt;
    return *found;
  };
  for (int pass = 0; pass < 2; ++pass)
    for (size_t i = 0; i < blocks.size(); ++i)
      if (!is_noted[i]) is_noted[i] = sync_code->has(blocks[i], block_at);
  return is_noted;
}

Module translate_whole(ElfFile elf, const TranslateOptions& options) {
  const GuestIsa& isa = *elf.isa;
  const uint32_t cpu = cpu_number(isa, options.cpu);
  const CodeImage image = discover_code(elf, cpu);

  Module module = make_module(elf, cpu, lay_out_code(elf));
  std::vector<CodeBlock> blocks =
      form_all_blocks(isa, {cpu, options.simulated_time, notes_accesses(options)}, image);
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
  if (options.journal) {
    const std::vector<NotedFunction> functions = find_noted(options, module);
    const std::vector<bool> is_noted = find_noted_blocks(options, module, blocks);
    for (size_t i = 0; i < blocks.size(); ++i)
      if (is_noted[i]) note_accesses(isa, blocks[i].draft, notes_of(options, functions));
  }
  for (CodeBlock& b : blocks)
    if (!renumber_slots(slots, b)) throw std::logic_error("a pass uses a slot that nothing did");
  describe_slots(isa, slots, module);
  link_blocks(std::move(blocks), module);
  return module;
}

Module load_module(std::span<const uint8_t> bytes, const std::string& name,
                   const TranslateOptions& options) {
  Module module = read_module(bytes, name);
  if (!options.cpu.empty() && options.cpu != module.cpu)
    throw Error(name + ": a module for CPU " + module.cpu + ", not " + options.cpu +
                ": translate the program again with gpusim translate --cpu " + options.cpu);
  if (!options.journal && !options.simulated_time) return module;
  Translator again(std::move(module), options);
  again.translate_again();
  return again.module();
}

// Who gave a name that there is not, is told a similar one and what a program is.
std::vector<uint8_t> read_program(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (path.empty() || fs::exists(path, error) || error) return read_file(path);
  throw Error(path + ": No such file or directory" + nearest_file(path) +
              "; expected the path of a program that is compiled for an ISA which `gpusim info` "
              "lists, or of a module (.gsm)");
}

bool can_write_code(const ElfFile& elf) {
  constexpr uint8_t kBoth = kWrite | kExecute;
  return std::any_of(elf.segments.begin(), elf.segments.end(),
                     [](const Segment& s) { return (s.flags & kBoth) == kBoth; });
}

}  // namespace

Module translate_elf(std::span<const uint8_t> bytes, const std::string& name,
                     const TranslateOptions& options) {
  return translate_whole(read_elf(bytes, name), options);
}

Module translate_file(const std::string& path, const TranslateOptions& options) {
  return translate_elf(read_program(path), path, options);
}

Module load_program(const std::string& path, const TranslateOptions& options) {
  const std::vector<uint8_t> bytes = read_program(path);
  return is_module(bytes) ? load_module(bytes, path, options) : translate_elf(bytes, path, options);
}

Translator open_program(const std::string& path, const TranslateOptions& options,
                        Translated translated) {
  return open_program(read_program(path), path, options, translated);
}

// Which registers its libraries use nobody knows yet: it has all but the core's number, which
// reads as 0 in a process of Linux.
Translator Translator::open_dynamic(ElfFile elf, const std::string& name,
                                    const TranslateOptions& options) {
  const GuestIsa& isa = *elf.isa;
  if (!isa.rare_slots.may_use || can_write_code(elf))
    throw Error(name + ": a dynamically linked program that is translated as a whole. " +
                "Link it with -static");
  const std::string path = options.interpreter(isa, elf.interpreter);
  add_interpreter(elf, read_file(path), path);
  SlotSet used;
  used.set();
  if (isa.abi.core_id != kNoSlot) used.reset(static_cast<size_t>(isa.abi.core_id));
  SlotMap slots = make_slot_map(isa, used, /*has_syscalls=*/true);
  const uint64_t begin = elf.interpreter_base,
                 end = elf.segments.back().address + elf.segments.back().size_bytes;
  Translator translator(std::move(elf), options, std::move(slots));
  translator.module_.shared_objects.push_back(
      {.begin = begin, .end = end, .bias = begin, .path = path});
  return translator;
}

Translator open_program(std::span<const uint8_t> bytes, const std::string& name,
                        const TranslateOptions& options, Translated translated) {
  if (is_module(bytes)) return Translator(load_module(bytes, name, options), options);
  ElfFile elf = read_elf(bytes, name, options.interpreter ? Dynamic::kAllowed : Dynamic::kRefused);
  if (!elf.interpreter.empty()) {
    if (translated == Translated::kOnDemand)
      return Translator::open_dynamic(std::move(elf), name, options);
    throw Error(name +
                ": a dynamically linked program works on at most 4,096 cores, since its libraries "
                "are translated where cores come. Use fewer cores, or link it with -static");
  }
  if (translated == Translated::kOnDemand && elf.isa->rare_slots.may_use && !can_write_code(elf)) {
    const Guise guise{cpu_number(*elf.isa, options.cpu), options.simulated_time,
                      notes_accesses(options)};
    // Which other slots its code needs shows too late.
    if (const auto unused = find_unused_slots(*elf.isa, guise, elf.pieces())) {
      SlotMap slots = make_slot_map(*elf.isa, ~*unused, /*has_syscalls=*/true);
      return Translator(std::move(elf), options, std::move(slots));
    }
  }
  return Translator(translate_whole(std::move(elf), options), options);
}

Translator::Translator(Module module, const TranslateOptions& options)
    : module_(std::move(module)), options_(options), isa_(find_isa(module_.isa)) {
  if (!isa_) throw Error("no translator for ISA '" + module_.isa + "'");
  cpu_ = cpu_number(*isa_, module_.cpu);
  renumbering_ = recover_slot_map(*isa_, module_);
  noted_ = find_noted(options_, module_);
  sync_code_ = find_sync_code(options_, module_);
}

Translator::Translator(ElfFile elf, const TranslateOptions& options, std::vector<int> renumbering)
    : options_(options),
      isa_(elf.isa),
      cpu_(cpu_number(*elf.isa, options.cpu)),
      renumbering_(std::move(renumbering)) {
  on_demand_ = std::make_unique<OnDemand>();
  on_demand_->open.address = static_cast<Slot>(renumbering_[isa_->roles.first_temp]);
  CodeMap code = lay_out_code(elf);
  on_demand_->leaders = find_leaders(elf, code);
  module_ = make_module(elf, cpu_, std::move(code));
  on_demand_->open.takes_all = module_.is_dynamic();
  describe_slots(*isa_, renumbering_, module_);
  noted_ = find_noted(options_, module_);
  sync_code_ = find_sync_code(options_, module_);
  block_at(module_.entry);
  growth_.clear();  // the next one begins so, too
}

Translator::Translator(const Translator& other)
    : module_(other.module_),
      options_(other.options_),
      exact_flags_(other.exact_flags_),
      growth_(other.growth_),
      isa_(other.isa_),
      cpu_(other.cpu_),
      renumbering_(other.renumbering_),
      noted_(other.noted_),
      sync_code_(other.sync_code_ ? std::make_unique<SyncCode>(*other.sync_code_) : nullptr),
      on_demand_(other.on_demand_ ? std::make_unique<OnDemand>(*other.on_demand_) : nullptr),
      traps_(other.traps_),
      trapped_(other.trapped_),
      breakpoints_(other.breakpoints_ ? std::make_unique<Breakpoints>(*other.breakpoints_)
                                      : nullptr) {}  // without a source of code
Translator::Translator(Translator&&) noexcept = default;
Translator::~Translator() = default;

Translator::Place Translator::block_at(uint64_t pc) {
  if (!module_.code.is_aligned(pc)) return {.fault = Fault::kFetchAlignment};
  if (const uint32_t found = find_block(module_.code, pc); found != kNoUop) return {.uop = found};

  const auto code = [this](uint64_t at) { return code_at(*isa_, module_, at); };
  const auto exists = [this](uint64_t at) { return find_block(module_.code, at) != kNoUop; };
  const auto starts = [&](uint64_t at) {
    if (breakpoints_ && breakpoints_->addresses.contains(at)) return true;
    return on_demand_ ? on_demand_->starts_block(module_.code, at) : exists(at);
  };
  BlockFormer former(*isa_, {cpu_, options_.simulated_time, notes_accesses(options_)}, code, starts,
                     on_demand_ ? OnDemand::kNearBlocks : BlockFormer::kAll);
  if (!former.has_insn(pc) && code_source_)
    if (std::optional<Segment> late = code_source_(pc)) add_late_code(std::move(*late));
  if (!former.has_insn(pc)) return {.fault = Fault::kFetchAccess};
  former.add(pc);
  add_blocks(former.finish(exists));
  growth_.push_back(pc);
  return {.uop = find_block(module_.code, pc), .is_new = true};
}

void Translator::translate_function(uint64_t address, uint64_t most_instructions) {
  uint64_t sizes = 0;
  std::vector<uint64_t> functions{address};
  for (size_t next = 0; next < functions.size() && sizes < most_instructions; ++next) {
    uint64_t pc = functions[next];
    const auto symbol = std::ranges::find_if(
        module_.symbols, [&](const Symbol& s) { return s.is_function && s.address == pc; });
    const uint64_t size = symbol == module_.symbols.end() ? 0 : symbol->size_bytes;
    do {
      const Place place = block_at(pc);
      if (place.uop == kNoUop) break;
      const Block& block = module_.blocks[module_.uop_block[place.uop]];
      sizes += block.insn_count;
      pc = end_pc(module_, block);
    } while (pc - functions[next] < size && sizes < most_instructions);
    for (const uint64_t target : branch_targets(module_, functions[next], size))
      if (target - functions[next] >= size &&
          std::ranges::find(functions, target) == functions.end())
        functions.push_back(target);
  }
}

void Translator::set_traps(std::vector<uint64_t> addresses) {
  remove_traps();
  traps_ = std::move(addresses);
  put_traps();
}

void Translator::remove_traps() {
  for (const auto& [index, uop] : trapped_) module_.uops[index] = uop;
  trapped_.clear();
  traps_.clear();
}

void Translator::put_traps() {
  for (const uint64_t pc : traps_) {
    const uint32_t index = find_block(module_.code, pc);
    if (index == kNoUop || module_.uops[index].op == Op::trap) continue;
    Uop& uop = module_.uops[index];
    trapped_.emplace_back(index, uop);
    uop = {.op = Op::trap,
           .aux = static_cast<uint8_t>(Fault::kBreakpoint),
           .imm = Uop::pack_target(module_.uop_block[index], 0)};
  }
}

void Translator::set_breakpoints(const std::vector<uint64_t>& addresses) {
  exact_flags_ = true;  // and no way out of a block has values of its own
  breakpoints_ = std::make_unique<Breakpoints>();
  breakpoints_->addresses.insert(addresses.begin(), addresses.end());
  forget_blocks();
}

void Translator::forget_blocks() {
  if (sync_code_) sync_code_->forget();
  std::fill(module_.code.uop_at.begin(), module_.code.uop_at.end(), kNoUop);
  if (on_demand_) on_demand_->open.targets.clear();
}

uint32_t Translator::behind_breakpoint(uint64_t pc) {
  if (!breakpoints_ || block_at(pc).uop == kNoUop) return kNoUop;
  const auto found = breakpoints_->behind.find(pc);
  return found == breakpoints_->behind.end() ? kNoUop : found->second;
}

bool Translator::is_breakpoint(uint32_t uop) const {
  if (!breakpoints_ || uop >= module_.uops.size() || module_.uops[uop].op != Op::trap) return false;
  const Block& block = module_.blocks[module_.uop_block[uop]];
  return block.insn_count == 0 && breakpoints_->addresses.contains(block.pc) &&
         module_.uops[uop].aux == static_cast<uint8_t>(Fault::kBreakpoint);
}

std::optional<Translator::Single> Translator::instruction(uint64_t pc) const {
  const auto code = [this](uint64_t at) { return code_at(*isa_, module_, at); };
  if (!module_.code.is_aligned(pc) || !isa_->first_insn(pc, code(pc))) return std::nullopt;
  CodeBlock block = form_block(*isa_, pc, code, [](uint64_t) { return true; },
                               {cpu_, options_.simulated_time, notes_accesses(options_)});
  remove_sink_writes(*isa_, block.draft);
  replace_zero_slots_in(block);
  renumber_slots(renumbering_, block);
  return Single{.uops = std::move(block.draft.uops),
                .next_pc = block.next_pc,
                .taken_pc = block.draft.end.taken_pc,
                .insn_class = block.draft.classes.front()};
}

void Translator::make_flags_exact() {
  if (exact_flags_) return;
  exact_flags_ = true;
  growth_.push_back(kExactFlags);
  translate_again();
}

void Translator::translate_again() {
  if (sync_code_) sync_code_->forget();
  std::fill(module_.code.uop_at.begin(), module_.code.uop_at.end(), kNoUop);
  std::unordered_set<uint64_t> starts;
  for (const Block& b : module_.blocks)
    if (b.insn_count != 0 && module_.code.is_code(b.pc))  // else it stands for a bad target
      starts.insert(b.pc);
  const auto code = [this](uint64_t at) { return code_at(*isa_, module_, at); };
  const auto starts_block = [&](uint64_t pc) {
    return starts.contains(pc) || (on_demand_ && on_demand_->starts_block(module_.code, pc));
  };
  BlockFormer former(*isa_, {cpu_, options_.simulated_time, notes_accesses(options_)}, code,
                     starts_block, on_demand_ ? starts.size() : BlockFormer::kAll);
  for (const uint64_t pc : starts)
    if (former.has_insn(pc)) former.add(pc);
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

// Slots that the module lacks have always been zero.
void Translator::replace_zero_slots_in(CodeBlock& block) const {
  SlotSet zero_slots;
  for (size_t s = 0; s < renumbering_.size(); ++s)
    zero_slots.set(s, renumbering_[s] == kNoSlot && !isa_->roles.is_temp(static_cast<Slot>(s)) &&
                          s != isa_->roles.sink);
  replace_zero_slots(*isa_, zero_slots, block.draft);
}

void Translator::add_blocks(std::vector<CodeBlock> blocks) {
  for (CodeBlock& b : blocks) replace_zero_slots_in(b);
  OptimiseScope scope{.exact_flags = exact_flags_};
  if (on_demand_) scope.reads_flags = [this](uint64_t pc) { return reads_flags(pc); };
  if (options_.optimise) optimise_blocks(*isa_, scope, blocks);
  for (CodeBlock& b : blocks) {
    if (is_noted(b)) note_accesses(*isa_, b.draft, notes_of(options_, noted_));
    renumber_slots(renumbering_, b);
  }
  link_blocks(std::move(blocks), module_, on_demand_ ? &on_demand_->open : nullptr,
              breakpoints_.get());
  put_traps();
}

bool Translator::is_noted(const CodeBlock& block) {
  if (!options_.journal || !sync_code_) return options_.journal;
  const auto code = [this](uint64_t at) { return code_at(*isa_, module_, at); };
  const auto starts = [this](uint64_t at) {
    return on_demand_ ? on_demand_->starts_block(module_.code, at)
                      : find_block(module_.code, at) != kNoUop;
  };
  const BlockFormer former(*isa_, {cpu_, options_.simulated_time, notes_accesses(options_)}, code,
                           starts, 1);
  return sync_code_->has(block, [&](uint64_t pc) -> std::optional<CodeBlock> {
    if (!module_.code.is_aligned(pc) || !former.has_insn(pc)) return std::nullopt;
    return former.form(pc);
  });
}

// Whether the code at pc may read flags that it has not written. Only a short way is looked at.
bool Translator::reads_flags(uint64_t pc) {
  const auto [answer, is_new] = on_demand_->reads_flags.try_emplace(pc, true);
  if (!is_new) return answer->second;
  constexpr int kMostBlocks = 3;
  const auto code = [this](uint64_t at) { return code_at(*isa_, module_, at); };
  const auto starts = [this](uint64_t at) { return on_demand_->starts_block(module_.code, at); };
  const BlockFormer former(*isa_, {cpu_, options_.simulated_time, notes_accesses(options_)}, code,
                           starts, 1);
  for (int i = 0; i < kMostBlocks && former.has_insn(pc); ++i) {
    const CodeBlock block = former.form(pc);
    const FlagsUse use = first_use_of_flags(*isa_, block);
    if (use == FlagsUse::kWrites) answer->second = false;
    const bool jumps = block.draft.end.present && block.draft.uops.back().op == Op::jmp;
    if (use != FlagsUse::kPasses || (block.draft.end.present && !jumps)) break;
    pc = jumps ? block.draft.end.taken_pc : block.next_pc;
  }
  return answer->second;
}

std::span<const uint8_t> code_from(const Module& module, uint64_t pc) {
  const auto behind = std::ranges::upper_bound(module.late_code, pc, {}, &Segment::address);
  if (behind != module.late_code.begin())
    if (const Segment& s = *std::prev(behind); pc - s.address < s.bytes.size())
      return std::span(s.bytes).subspan(pc - s.address);
  for (const Segment& s : module.segments)
    if (pc >= s.address && pc - s.address < s.bytes.size())
      return std::span(s.bytes).subspan(pc - s.address);
  return {};
}

std::vector<uint64_t> branch_targets(const Module& module, uint64_t address, uint64_t size_bytes) {
  std::vector<uint64_t> targets;
  const GuestIsa* const isa = find_isa(module.isa);
  const std::span<const uint8_t> code = code_from(module, address);
  if (isa) find_targets(*isa, address, code.first(std::min(code.size(), size_bytes)), targets);
  return targets;
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
