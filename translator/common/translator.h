// Guest program in, module out; and more blocks on demand while the module runs.
//
// All failures are exceptions of type gpusim::Error (device_sim/base/error.h) with a message for
// the user.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device_sim/base/error.h"
#include "device_sim/uir/module.h"

namespace gpusim {

struct Breakpoints;  // translator/common/link.h
struct CodeBlock;    // translator/common/draft.h
struct GuestInsn;    // translator/common/guest_isa.h
struct GuestIsa;
struct ElfFile;        // translator/elf/elf_file.h
struct NotedFunction;  // translator/passes/note_accesses.h
class SyncCode;        // translator/passes/sync_code.h

struct NotedName {
  std::string_view name;
  uint8_t arguments;  // a bit for each integer argument
};

struct TranslateOptions {
  bool optimise = true;  // false: the visitors' micro-ops as they are (to find a bug in a pass)
  bool journal = false;  // with notes of what cores do (device_sim/uir/journal.h)
  // With `journal`: what is noted beside the blocks that cores execute.
  bool accesses = true;         // accesses to memory
  bool stamps = false;          // fences: their order
  bool stack_pointers = false;  // calls and indirect jumps: the stack pointer
  // Functions whose arguments and results are noted, by name: of `f` also those of `f.part.0`.
  std::vector<NotedName> functions = {};
  // Only blocks that bear on the order between cores are noted, each with its core's clock:
  // those that synchronise, those of the functions with these names, and loops that may wait.
  bool order_only = false;
  std::vector<std::string_view> order_functions = {};
  bool simulated_time = false;  // services order cores in simulated time (Service::kTime*)
  std::string cpu = {};  // one of GuestIsa::cpus; empty: the ISA's default, or the module file's
  /// open_program(): the file of a dynamic program's interpreter (PT_INTERP), which is loaded
  /// behind the program and begins. Empty: dynamic programs are an Error.
  std::function<std::string(const GuestIsa& isa, const std::string& path)> interpreter = {};
};

/// A static ELF file. `name` stands in messages, usually the path.
Module translate_elf(std::span<const uint8_t> bytes, const std::string& name,
                     const TranslateOptions& options = {});
Module translate_file(const std::string& path, const TranslateOptions& options = {});

/// A static ELF file or a module file (translator/module_io.h), whichever it is. Error if a module
/// file was made for another CPU than the options ask for.
Module load_program(const std::string& path, const TranslateOptions& options = {});

/// When the code of a program is translated: before it runs, or where cores come. What blocks do
/// and count is the same, and nearly always where they start
/// (docs/adr/0027-translation-on-demand.md).
enum class Translated : uint8_t { kWhole, kOnDemand };

class Translator;
/// The same program, ready to grow. On demand nothing is translated at first but what is at the
/// entry (see Translator::block_at). Module files are whole, and so are programs that may write
/// their code, or of an ISA that cannot do it (GuestIsa::rare_slots).
Translator open_program(const std::string& path, const TranslateOptions& options,
                        Translated translated);
/// The same of a file's bytes. `name` stands in messages, usually the path.
Translator open_program(std::span<const uint8_t> bytes, const std::string& name,
                        const TranslateOptions& options, Translated translated);

/// A module that can grow while backends execute it. Existing micro-ops and blocks never change or
/// move in number, but for ends of blocks that led to code which was not translated (OpenTargets in
/// translator/common/link.h); their storage may move: tell the backend (module_changed) after
/// growing.
class Translator {
 public:
  explicit Translator(Module module, const TranslateOptions& options = {});
  /// A copy grows on its own.
  Translator(const Translator& other);
  Translator(Translator&&) noexcept;
  ~Translator();

  const Module& module() const { return module_; }

  struct Place {
    uint32_t uop = kNoUop;       // first micro-op of the block at pc
    Fault fault = Fault::kNone;  // kFetchAccess or kFetchAlignment when there can't be one
    bool is_new = false;         // the module grew
  };
  /// The block that starts at guest address pc, translated now if that was not done before.
  Place block_at(uint64_t pc);

  /// The function at this address and those that it calls by name, one after the other, until
  /// `most_instructions` are there: so that cores need not stop at each new place.
  void translate_function(uint64_t address, uint64_t most_instructions);

  /// From now on a core that comes to the block at one of these addresses stops with
  /// Fault::kBreakpoint before the first instruction.
  void set_traps(std::vector<uint64_t> addresses);
  void remove_traps();

  /// Code in guest memory that is not the program's file's: all that can be executed around pc, as
  /// it is now; nothing if nothing can. block_at() asks for code that the module lacks.
  using CodeSource = std::function<std::optional<Segment>(uint64_t pc)>;
  void set_code_source(CodeSource source);
  /// The module's late code in the range is no more. The code map forgets all blocks, the
  /// program's, too: as with set_breakpoints(), no core may go on in them.
  void forget_late_code(uint64_t address, uint64_t size_bytes);
  /// Late code has these bytes now, and where blocks have instructions the same ones as before.
  void refresh_late_code(uint64_t address, std::span<const uint8_t> bytes);

  /// The module names what lies in the object from now on. What lay in its place loses its names.
  void add_shared_object(SharedObject object, std::vector<Symbol> symbols);

  /// For debuggers. A core that comes to one of these addresses stops with Fault::kBreakpoint, in a
  /// block without instructions, before the instruction there. The code map forgets all blocks;
  /// they are translated again where cores come, with exact flags. Blocks that exist stay and lead
  /// to each other: no core may go on in them.
  void set_breakpoints(const std::vector<uint64_t>& addresses);
  /// Where a core goes on that does not stop at a breakpoint, or kNoUop.
  uint32_t behind_breakpoint(uint64_t pc);
  /// Whether this micro-op stands for a breakpoint.
  bool is_breakpoint(uint32_t uop) const;

  /// One instruction as micro-ops, the last of which may end a block.
  struct Single {
    std::vector<Uop> uops;
    uint64_t next_pc = 0;   // behind it
    uint64_t taken_pc = 0;  // of an end: where it leads
    InsnClass insn_class = InsnClass::kOther;
  };
  /// Nothing where there is no code.
  std::optional<Single> instruction(uint64_t pc) const;

  /// From now on flags are exact wherever a core may fault, not only where the program reads them:
  /// all blocks are translated again, and the code map knows only the new ones. The module grew.
  void make_flags_exact();
  bool flags_are_exact() const { return exact_flags_; }

  /// What made the module grow, in order: addresses that block_at() translated, and kExactFlags for
  /// make_flags_exact(). Another translator of the same program grows the same module from it.
  static constexpr uint64_t kExactFlags = ~uint64_t{0};
  const std::vector<uint64_t>& growth() const { return growth_; }
  void grow_again(std::span<const uint64_t> growth);

  /// All blocks under the options; the code map knows only the new ones. The module grew.
  void translate_again();

 private:
  friend Translator open_program(std::span<const uint8_t> bytes, const std::string& name,
                                 const TranslateOptions& options, Translated translated);
  struct OnDemand;
  static Translator open_dynamic(ElfFile elf, const std::string& name,
                                 const TranslateOptions& options);
  Translator(ElfFile elf, const TranslateOptions& options, std::vector<int> renumbering);
  void add_blocks(std::vector<CodeBlock> blocks);
  void add_late_code(Segment code);
  void forget_blocks();
  bool reads_flags(uint64_t pc);
  bool is_noted(const CodeBlock& block);
  void put_traps();
  void replace_zero_slots_in(CodeBlock& block) const;

  Module module_;
  TranslateOptions options_;
  bool exact_flags_ = false;
  std::vector<uint64_t> growth_;
  const GuestIsa* isa_ = nullptr;
  uint32_t cpu_ = 0;
  std::vector<int> renumbering_;  // canonical slot -> module's slot, or kNoSlot
  std::vector<NotedFunction> noted_;
  std::unique_ptr<SyncCode> sync_code_;  // if nothing else is noted
  std::unique_ptr<OnDemand> on_demand_;  // of a program that is translated so
  CodeSource code_source_;
  std::vector<uint64_t> traps_;                    // addresses
  std::vector<std::pair<uint32_t, Uop>> trapped_;  // what stood at a micro-op before
  std::unique_ptr<Breakpoints> breakpoints_;       // of a program that is debugged
};

/// The bytes of the module's image from pc on; empty where it has none.
std::span<const uint8_t> code_from(const Module& module, uint64_t pc);
/// The guest instruction at pc, if the module's image has one there.
GuestInsn instruction_at(const Module& module, uint64_t pc);

/// Where the branches and calls in `size_bytes` of code lead, by each instruction's word alone:
/// data that looks like a branch counts as one.
std::vector<uint64_t> branch_targets(const Module& module, uint64_t address, uint64_t size_bytes);

/// Guest address of the instruction that a micro-op belongs to.
inline uint64_t uop_pc(const Module& module, uint32_t uop) {
  return insn_pc(module, module.blocks[module.uop_block[uop]], module.uop_insn[uop]);
}

/// Where a core is that goes on at a micro-op. At a block's start that is the block's address: its
/// first instructions may need no micro-op. At a link it is where that leads.
inline uint64_t place_pc(const Module& module, uint32_t uop) {
  for (size_t n = 0; n < module.blocks.size() && module.uops[uop].op == Op::link; ++n)
    uop = module.uops[uop].target();
  const Block& block = module.blocks[module.uop_block[uop]];
  return block.first_uop == uop ? block.pc : uop_pc(module, uop);
}

/// Compilers call parts of `f`, and copies for certain arguments, `f.part.0`, `f.constprop.1`.
inline std::string_view name_of_whole(std::string_view name) {
  return name.substr(0, name.find('.', 1));
}

/// Symbol of that name, or null.
const Symbol* find_symbol(const Module& module, const std::string& name);
/// The same; Error with the nearest name if there is none. `what` begins the message: "--entry".
const Symbol& require_symbol(const Module& module, const std::string& name,
                             const std::string& what);

/// The symbol that covers the address: the nearest one, of its names the first one listed; or null.
const Symbol* symbol_at(const Module& module, uint64_t address);
/// "main+0x10"; "0x401234" where no symbol covers the address.
std::string symbolize(const Module& module, uint64_t address);
/// The shared object in which the address lies, or null.
const SharedObject* shared_object_at(const Module& module, uint64_t address);

/// "add x0, x1, x2", or ".word 0x00000000" if nothing knows it. For listings and fault messages.
std::string describe_instruction(const Module& module, uint64_t pc);
/// Its bytes: "0x8b020020" where they are 2 or 4, as the number that they are in memory; else
/// "0x" and one after the other.
std::string encoding_text(const GuestInsn& insn);

}  // namespace gpusim
