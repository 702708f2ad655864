#include "host/start_state.h"

#include <elf.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

#include "device_sim/base/error.h"
#include "device_sim/core/memory_view.h"
#include "host/linux/abi.h"
#include "translator/common/isa_list.h"

namespace gpusim::host {
namespace {

// linux/auxvec.h
enum AuxType : uint64_t {
  kAtNull = 0,
  kAtPhdr = 3,
  kAtPhent = 4,
  kAtPhnum = 5,
  kAtPagesz = 6,
  kAtBase = 7,
  kAtFlags = 8,
  kAtEntry = 9,
  kAtUid = 11,
  kAtEuid = 12,
  kAtGid = 13,
  kAtEgid = 14,
  kAtPlatform = 15,
  kAtHwcap = 16,
  kAtClktck = 17,
  kAtSecure = 23,
  kAtRandom = 25,
  kAtHwcap2 = 26,
  kAtExecfn = 31,
  // Ours: libgpusim/guest/gpusim_guest.h.
  kAtGpusimCoreId = 0x47505300,
  kAtGpusimCoreCount = 0x47505301,
  kAtGpusimStackDistance = 0x47505302,
  kAtGpusimStackTop = 0x47505303,
};

const GuestCpu& cpu_of(const Module& module) {
  const GuestIsa& isa = *find_isa(module.isa);
  return isa.cpus[find_cpu(isa, module.cpu).value_or(0)];
}

// Deterministic, so that runs repeat: C libraries seed stack canaries with it.
constexpr uint8_t kRandomBytes[16] = {0x67, 0x70, 0x75, 0x73, 0x69, 0x6d, 0x3a, 0x9e,
                                      0x37, 0x79, 0xb9, 0x7f, 0x4a, 0x7c, 0x15, 0xf3};

// Grows downwards from the top of a stack.
class StackWriter {
 public:
  StackWriter(uint64_t top, uint64_t room) : top_(top), room_(room) {}

  uint64_t push(std::span<const uint8_t> data) {
    if (data.size() > room_ - used_)
      throw Error(
          fmt::format("arguments and environment do not fit into a stack of {} KiB; "
                      "use a larger --stack-size",
                      room_ / 1024));
    used_ += data.size();
    reversed_.insert(reversed_.end(), data.rbegin(), data.rend());
    return top_ - used_;
  }
  uint64_t push_string(const std::string& s) {
    return push({reinterpret_cast<const uint8_t*>(s.c_str()), s.size() + 1});
  }
  void push_zeroes(uint64_t count) { push(std::vector<uint8_t>(count)); }
  void align(uint64_t to) { push_zeroes((top_ - used_) & (to - 1)); }
  uint64_t address() const { return top_ - used_; }
  std::vector<uint8_t> take() const { return {reversed_.rbegin(), reversed_.rend()}; }

 private:
  uint64_t top_, room_, used_ = 0;
  std::vector<uint8_t> reversed_;
};

uint32_t block_at(Backend& backend, Translator& translator, uint64_t pc, const char* what) {
  const Translator::Place place = translator.block_at(pc);
  if (place.uop == kNoUop)
    throw Error(fmt::format("{} {:#x} is not in executable memory of the program", what, pc));
  if (place.is_new) backend.module_changed();
  return place.uop;
}

void set_if(Backend& backend, int slot, CoreWord value) {
  if (slot != kNoSlot) backend.set_slots(static_cast<Slot>(slot), value);
}

// What a guest reads as its number and the number of cores that share its memory. A private core is
// alone: it reads the 0 that it would read under Linux.
CoreWord core_word(const MemoryPlan& plan) {
  if (plan.config.memory_model == MemoryModel::kPrivate) return {};
  return {uint64_t{plan.config.cores} << 32, 1};
}

}  // namespace

std::vector<CoreWord> StackImage::words(uint64_t distance) const {
  std::vector<CoreWord> out(bytes.size() / sizeof(uint64_t));
  for (size_t i = 0; i < out.size(); ++i)
    std::memcpy(&out[i].value, bytes.data() + 8 * i, sizeof(uint64_t));
  // Where words of the guest are narrower, each has its part of the step: no sum leaves its word.
  for (const size_t offset : address_words) out[offset / 8].step += distance << 8 * (offset % 8);
  return out;
}

StackImage process_stack(const Module& module, const ProcessStart& start, uint64_t stack_top,
                         uint64_t room_bytes, std::span<const AuxEntry> extra) {
  const GuestCpu& cpu = cpu_of(module);
  StackWriter stack(stack_top, room_bytes);
  stack.push_zeroes(8);
  const uint64_t execfn = stack.push_string(start.program);
  // Strings lie in ascending order, as Linux leaves them.
  std::vector<uint64_t> env(start.environment.size()), argv(start.args.size() + 1);
  for (size_t i = env.size(); i-- > 0;) env[i] = stack.push_string(start.environment[i]);
  for (size_t i = start.args.size(); i-- > 0;) argv[i + 1] = stack.push_string(start.args[i]);
  argv[0] = stack.push_string(start.argv0.value_or(start.program));
  const LinuxAbi& abi = linux_abi(module);
  const uint64_t platform = abi.platform ? stack.push_string(abi.platform) : 0;
  stack.align(16);
  const uint64_t random = stack.push(kRandomBytes);

  // Order and contents as qemu-user 7.2 gives them.
  std::vector<AuxEntry> aux = {
      {kAtPhdr, module.phdr_address},
      {kAtPhent, module.phdr_entry_size},
      {kAtPhnum, module.phdr_count},
      {kAtPagesz, kPageSize},
      {kAtBase, module.interpreter_base},
      {kAtFlags, 0},
      {kAtEntry, module.is_dynamic() ? module.program_entry : module.entry},
      {kAtUid, getuid()},
      {kAtEuid, geteuid()},
      {kAtGid, getgid()},
      {kAtEgid, getegid()},
      {kAtHwcap, cpu.hwcap},
      {kAtClktck, 100},
      {kAtRandom, random},
      {kAtSecure, 0},
      {kAtExecfn, execfn},
  };
  if (abi.has_hwcap2) aux.push_back({kAtHwcap2, cpu.hwcap2});
  if (abi.platform) aux.push_back({kAtPlatform, platform});
  StackImage image;
  const size_t word_bytes = find_isa(module.isa)->register_bits / 8;
  std::vector<uint64_t> words{argv.size()};
  const auto add_address = [&](uint64_t address) {
    image.address_words.push_back(word_bytes * words.size());
    words.push_back(address);
  };
  for (const uint64_t address : argv) add_address(address);
  words.push_back(0);
  for (const uint64_t address : env) add_address(address);
  words.push_back(0);
  for (const auto& [type, value] : aux) {
    words.push_back(type);
    if (type == kAtRandom || type == kAtExecfn || type == kAtPlatform)
      add_address(value);
    else
      words.push_back(value);
  }
  image.auxiliary_vector = aux;
  image.auxiliary_vector.insert(image.auxiliary_vector.end(), extra.begin(), extra.end());
  image.extra_offset = word_bytes * words.size();
  for (const auto& [type, value] : extra) words.insert(words.end(), {type, value});
  words.insert(words.end(), {kAtNull, 0});
  std::vector<uint8_t> bytes(word_bytes * words.size());
  for (size_t i = 0; i < words.size(); ++i)
    std::memcpy(&bytes[word_bytes * i], &words[i], word_bytes);
  stack.align(8);
  // The stack pointer is a multiple of 16 at the entry.
  stack.push_zeroes((stack.address() - bytes.size()) & 15);
  image.stack_pointer = stack.push(bytes);
  image.bytes = stack.take();
  return image;
}

// Libraries keep their threads' data at the thread pointer, and only programs that know of cores read
// the core's number.
bool makes_its_threads(const Module& module) {
  return module.is_dynamic() ||
         (module.abi.thread_pointer != kNoSlot && module.abi.core_id == kNoSlot &&
          !find_symbol(module, "gpusim_main"));
}

std::vector<AuxEntry> start_as_process(Backend& backend, Translator& translator,
                                       const MemoryPlan& plan, const ProcessStart& start,
                                       uint32_t cores) {
  const uint32_t entry =
      block_at(backend, translator, translator.module().entry, "the program's entry");
  const AbiSlots& abi = translator.module().abi;
  const bool is_private = plan.config.memory_model == MemoryModel::kPrivate;
  // Not for a core that is alone: its instructions are counted against those under qemu-user,
  // and C libraries walk the whole vector.
  const bool alone = is_private || plan.config.cores == 1;
  const uint64_t distance = plan.stack_top(1) - plan.stack_top(0);
  const AuxEntry who[] = {{kAtGpusimCoreId, 0},
                          {kAtGpusimCoreCount, plan.config.cores},
                          {kAtGpusimStackDistance, distance},
                          {kAtGpusimStackTop, plan.stack_top(0)}};
  StackImage image =
      process_stack(translator.module(), start, plan.stack_top(0), plan.stack_size_bytes,
                    alone ? std::span<const AuxEntry>{} : who);
  bool written = false;
  if (is_private) {
    written = backend.write_memory_all(image.stack_pointer, image.bytes);
  } else {
    std::vector<CoreWord> words = image.words(distance);
    if (!alone) {  // the core's number
      const size_t at = image.extra_offset + find_isa(translator.module().isa)->register_bits / 8;
      words[at / 8].step += uint64_t{1} << 8 * (at % 8);
    }
    written = backend.write_windows(image.stack_pointer, words);
  }
  if (!written) throw Error("cannot write the stacks");
  set_if(backend, abi.stack_pointer, {image.stack_pointer, distance});
  set_if(backend, abi.core_id, core_word(plan));
  if (cores == plan.config.cores)
    backend.start_all(entry);
  else
    for (uint32_t core = 0; core < cores; ++core) backend.start(core, entry);
  return image.auxiliary_vector;
}

uint64_t return_address(const Module& module) {
  return find_isa(module.isa)->in_register(kReturnAddress);
}

CallValue parse_call_value(const Module& module, const std::string& text) {
  using Kind = CallValue::Kind;
  if (text == "@core") return {Kind::kCore, 0};
  if (text == "@cores") return {Kind::kCores, 0};
  if (text.starts_with('&')) {
    return {Kind::kInteger, require_symbol(module, text.substr(1), "--arg " + text).address};
  }
  const bool negative = text.starts_with('-');
  const std::string_view digits = std::string_view(text).substr(negative || text.starts_with('+'));
  const bool hex = digits.starts_with("0x") || digits.starts_with("0X");
  const char* const end = digits.data() + digits.size();
  if (!hex && digits.find('.') != std::string_view::npos) {
    double value = 0;
    const auto [stop, error] = std::from_chars(digits.data(), end, value);
    if (error == std::errc{} && stop == end)
      return {Kind::kFloat, std::bit_cast<uint64_t>(negative ? -value : value)};
  } else {
    uint64_t value = 0;
    const auto [stop, error] =
        std::from_chars(digits.data() + (hex ? 2 : 0), end, value, hex ? 16 : 10);
    if (error == std::errc{} && stop == end) {
      const uint32_t bits = find_isa(module.isa)->register_bits;
      if (bits < 64 && value > (negative ? uint64_t{1} << (bits - 1) : ~uint64_t{0} >> (64 - bits)))
        throw Error(fmt::format("--arg {}: {} has registers of {} bits", text, module.isa, bits));
      return {Kind::kInteger, negative ? 0 - value : value};
    }
  }
  throw Error(
      fmt::format("--arg {}: neither an integer of 64 bits (decimal or 0x), a float "
                  "with a point, &SYMBOL, @core nor @cores",
                  text));
}

namespace {

// The bytes at an address of the program's image; zero where the file has none.
bool read_image(const Module& module, uint64_t address, std::span<uint8_t> out) {
  for (const Segment& s : module.segments) {
    const uint64_t offset = address - s.address;
    if (offset >= s.size_bytes || out.size() > s.size_bytes - offset) continue;
    std::fill(out.begin(), out.end(), uint8_t{0});
    if (offset < s.bytes.size())
      std::copy_n(s.bytes.begin() + static_cast<std::ptrdiff_t>(offset),
                  std::min<uint64_t>(out.size(), s.bytes.size() - offset), out.begin());
    return true;
  }
  return false;
}

// A program header, from the image.
template <class Phdr>
bool read_header_as(const Module& module, uint16_t i, Elf64_Phdr* out) {
  Phdr header;
  if (!read_image(module, module.phdr_address + i * sizeof header,
                  {reinterpret_cast<uint8_t*>(&header), sizeof header}))
    return false;
  *out = {.p_type = header.p_type,
          .p_flags = header.p_flags,
          .p_offset = header.p_offset,
          .p_vaddr = header.p_vaddr,
          .p_paddr = header.p_paddr,
          .p_filesz = header.p_filesz,
          .p_memsz = header.p_memsz,
          .p_align = header.p_align};
  return true;
}
bool read_header(const Module& module, uint16_t i, Elf64_Phdr* out) {
  if (module.phdr_entry_size == sizeof(Elf32_Phdr))
    return read_header_as<Elf32_Phdr>(module, i, out);
  return module.phdr_entry_size == sizeof(Elf64_Phdr) &&
         read_header_as<Elf64_Phdr>(module, i, out);
}

// Thread-local variables of a call's cores: at the top of each stack, behind the thread control block
// that the thread pointer names (variant 1 of Drepper, "ELF Handling For Thread-Local Storage").
// There is no C library's thread: what it keeps before the block is not there.
struct ThreadLocals {
  uint64_t pointer = 0;  // of core 0
  uint64_t stack_top = 0;
  std::vector<uint8_t> block;  // from the pointer on
};
ThreadLocals place_thread_locals(const Module& module, const MemoryPlan& plan) {
  const uint64_t control_block = linux_abi(module).thread_control_block;
  ThreadLocals out{.pointer = 0, .stack_top = plan.stack_top(0), .block = {}};
  for (uint16_t i = 0; i < module.phdr_count; ++i) {
    Elf64_Phdr header;
    if (!read_header(module, i, &header)) break;
    if (header.p_type != PT_TLS) continue;
    const uint64_t alignment = std::bit_ceil(std::clamp<uint64_t>(header.p_align, 16, kPageSize));
    const uint64_t begin = (control_block + alignment - 1) & ~(alignment - 1);
    const uint64_t most = plan.stack_size_bytes / 2;
    if (header.p_memsz > most || begin + header.p_memsz > most || header.p_filesz > header.p_memsz)
      throw Error(
          fmt::format("{} bytes of thread-local variables do not fit into stacks of {} "
                      "KiB; use larger ones",
                      header.p_memsz, plan.stack_size_bytes / 1024));
    out.block.resize((begin + header.p_memsz + 7) & ~uint64_t{7});
    if (header.p_filesz != 0)
      read_image(module, header.p_vaddr, std::span(out.block).subspan(begin, header.p_filesz));
    out.pointer = (out.stack_top - out.block.size()) & ~(alignment - 1);
    out.stack_top = out.pointer;
    break;
  }
  return out;
}

// The same bytes on each stack; whole words.
void write_stacks(Backend& backend, const MemoryPlan& plan, uint64_t address,
                  std::span<const uint8_t> bytes) {
  bool written = false;
  if (plan.config.memory_model == MemoryModel::kPrivate) {
    written = backend.write_memory_all(address, bytes);
  } else {
    std::vector<CoreWord> words(bytes.size() / sizeof(uint64_t));
    for (size_t i = 0; i < words.size(); ++i)
      std::memcpy(&words[i].value, bytes.data() + 8 * i, sizeof(uint64_t));
    written = backend.write_windows(address, words);
  }
  if (!written) throw Error("cannot write the stacks");
}

// A copy of the bytes on each stack, below `stack_top`, which goes down to it: a multiple of 16.
CoreWord push_copy(Backend& backend, const MemoryPlan& plan, std::span<const uint8_t> bytes,
                   uint64_t* stack_top) {
  std::vector<uint8_t> words(bytes.begin(), bytes.end());
  words.resize((words.size() + 15) & ~size_t{15});
  if (*stack_top - plan.stack_bottom(0) < words.size() + plan.stack_size_bytes / 4)
    throw Error(
        fmt::format("structures as arguments do not fit into stacks of {} KiB; use "
                    "larger ones",
                    plan.stack_size_bytes / 1024));
  *stack_top -= words.size();
  write_stacks(backend, plan, *stack_top, words);
  return {*stack_top, plan.stack_top(1) - plan.stack_top(0)};
}

}  // namespace

void start_as_call(Backend& backend, Translator& translator, const MemoryPlan& plan,
                   uint64_t address, std::span<const CallWord> args) {
  constexpr size_t kMost = std::size(AbiSlots{}.call_args);
  const auto floats = static_cast<size_t>(
      std::count_if(args.begin(), args.end(), [](const CallWord& a) { return a.is_float; }));
  if (args.size() - floats > kMost || floats > kMost)
    throw Error(
        fmt::format("at most {} integer and {} float arguments go in registers; "
                    "more cannot be passed",
                    kMost, kMost));
  const uint32_t uop = block_at(backend, translator, address, "the entry function at");
  const Module& module = translator.module();
  const AbiSlots abi = module.abi;
  const uint64_t distance = plan.stack_top(1) - plan.stack_top(0);
  uint64_t stack_top = plan.stack_top(0);
  if (abi.thread_pointer != kNoSlot) {
    const ThreadLocals locals = place_thread_locals(module, plan);
    stack_top = locals.stack_top;
    if (!locals.block.empty()) {
      set_if(backend, abi.thread_pointer, {locals.pointer, distance});
      write_stacks(backend, plan, locals.pointer, locals.block);
    }
  }
  if (const char* const name = linux_abi(module).global_pointer_symbol)
    if (const Symbol* const symbol = find_symbol(module, name))
      set_if(backend, abi.global_pointer, {symbol->address});
  set_if(backend, abi.core_id, core_word(plan));
  set_if(backend, abi.link, {return_address(module)});
  const GuestIsa& isa = *find_isa(module.isa);
  size_t next_integer = 0, next_float = 0;
  for (const CallWord& arg : args) {
    const int slot =
        arg.is_float ? abi.call_float_args[next_float++] : abi.call_args[next_integer++];
    if (!arg.copy.empty()) {
      set_if(backend, slot, push_copy(backend, plan, arg.copy, &stack_top));
    } else if (arg.per_core.empty()) {
      const uint64_t value = arg.is_float ? arg.word.value : isa.in_register(arg.word.value);
      set_if(backend, slot, {value, arg.word.step});
    } else if (slot != kNoSlot) {
      for (uint32_t core = 0; core < plan.config.cores; ++core)
        backend.set_slot(core, static_cast<Slot>(slot),
                         arg.is_float ? arg.per_core[core] : isa.in_register(arg.per_core[core]));
    }
  }
  set_if(backend, abi.stack_pointer, {stack_top - 16, distance});
  backend.start_all(uop);
}

void start_as_call(Backend& backend, Translator& translator, const MemoryPlan& plan,
                   const std::string& symbol, std::span<const std::string> args) {
  const Module& module = translator.module();
  const Symbol* function = &require_symbol(module, symbol, "--entry");
  std::vector<CallWord> words;
  for (const std::string& text : args) {
    const CallValue v = parse_call_value(module, text);
    switch (v.kind) {
      case CallValue::Kind::kFloat:
        words.push_back({{v.bits}, true});
        break;
      case CallValue::Kind::kInteger:
        words.push_back({{v.bits}});
        break;
      case CallValue::Kind::kCore:
        words.push_back({{plan.first_core, 1}});
        break;
      case CallValue::Kind::kCores:
        words.push_back({{plan.machine_cores()}});
        break;
    }
  }
  start_as_call(backend, translator, plan, function->address, words);
}

}  // namespace gpusim::host
