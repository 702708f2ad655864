#include "translator/module_io.h"

#include <fmt/format.h>
#include <zlib.h>

#include <cstring>

#include "device_sim/base/archive.h"
#include "translator/module_check.h"

namespace gpusim {
namespace {

constexpr char kMagic[8] = {'G', 'P', 'U', 'S', 'I', 'M', 'M', '\n'};
// Raise it with every change of the layout below, of uops.def, or of what micro-ops mean.
constexpr uint32_t kVersion = 8;
constexpr size_t kHeaderBytes = sizeof kMagic + 4 + 4 + 8;

uint32_t checksum(std::span<const uint8_t> bytes) {
  return static_cast<uint32_t>(crc32_z(crc32_z(0, nullptr, 0), bytes.data(), bytes.size()));
}

// Refuses a file that another list of micro-ops was compiled into.
uint32_t uop_list_checksum() {
  std::string names;
  for (const OpInfo& info : kOpInfo)
    names += fmt::format("{}:{} ", info.name, static_cast<int>(info.shape));
  for (const char* name : vector::kNames) names += fmt::format("{} ", name);
  return checksum({reinterpret_cast<const uint8_t*>(names.data()), names.size()});
}

template <class Archive>
void describe(Archive& a, AbiSlots& abi) {
  for (int* s : {&abi.stack_pointer, &abi.link, &abi.thread_pointer, &abi.global_pointer,
                 &abi.core_id, &abi.monitor, &abi.fp_state, &abi.syscall_number,
                 &abi.syscall_result})
    a.value(*s);
  for (int& s : abi.syscall_args) a.value(s);
  for (int& s : abi.call_args) a.value(s);
  for (int& s : abi.call_float_args) a.value(s);
}

template <class Archive>
void describe(Archive& a, Module& m) {
  a.plain_array(m.isa, kAnyCount);
  a.plain_array(m.cpu, kAnyCount);
  a.value(m.entry);
  a.plain_array(m.uops, kAnyCount);
  a.plain_array(m.uop_insn, kAnyCount);
  a.plain_array(m.uop_block, kAnyCount);
  a.list(m.blocks, kAnyCount, [&](Block& b) {
    a.value(b.pc);
    a.value(b.insn_count);
    a.value(b.first_uop);
    a.value(b.uop_count);
    a.value(b.first_offset);
    for (uint32_t& count : b.classes) a.value(count);
  });
  a.plain_array(m.insn_offsets, kAnyCount);
  a.value(m.code.text_base);
  a.value(m.code.pc_shift);
  a.plain_array(m.code.uop_at, kAnyCount);
  a.plain_array(m.code.insn_class, kAnyCount);
  a.value(m.warp_size);
  a.value(m.slot_count);
  a.list(m.slot_names, kAnyCount, [&](SlotName& n) {
    a.value(n.slot);
    a.plain_array(n.name, kAnyCount);
  });
  a.list(m.initial_values, kAnyCount, [&](InitialValue& v) {
    a.value(v.slot);
    a.value(v.value);
  });
  describe(a, m.abi);
  a.list(m.segments, kAnyCount, [&](Segment& s) {
    a.value(s.address);
    a.value(s.size_bytes);
    a.value(s.flags);
    a.plain_array(s.bytes, kAnyCount);
  });
  a.list(m.symbols, kAnyCount, [&](Symbol& s) {
    a.value(s.address);
    a.value(s.size_bytes);
    a.plain_array(s.name, kAnyCount);
    a.value(s.is_function);
  });
  a.plain_array(m.unknown, kAnyCount);
  a.value(m.phdr_address);
  a.value(m.phdr_count);
  a.value(m.phdr_entry_size);
}

template <class T>
T get(std::span<const uint8_t> bytes, size_t at) {
  T v;
  std::memcpy(&v, bytes.data() + at, sizeof v);
  return v;
}

}  // namespace

bool is_module(std::span<const uint8_t> bytes) {
  return bytes.size() >= sizeof kMagic && std::memcmp(bytes.data(), kMagic, sizeof kMagic) == 0;
}

std::vector<uint8_t> module_bytes(const Module& module) {
  ByteSink payload;
  ArchiveWriter writer(payload);
  writer.value(uop_list_checksum());
  // A writer only reads what it is shown.
  describe(writer, const_cast<Module&>(module));
  const std::vector<uint8_t>& body = payload.bytes;
  std::vector<uint8_t> bytes(kMagic, kMagic + sizeof kMagic);
  const auto put = [&](auto v) {
    const auto* p = reinterpret_cast<const uint8_t*>(&v);
    bytes.insert(bytes.end(), p, p + sizeof v);
  };
  put(kVersion);
  put(checksum(body));
  put(uint64_t{body.size()});
  bytes.insert(bytes.end(), body.begin(), body.end());
  return bytes;
}

Module read_module(std::span<const uint8_t> bytes, const std::string& name) {
  const auto fail = [&](const std::string& what) {
    throw Error(name + ": " + what + ". Translate the program again with gpusim translate");
  };
  if (!is_module(bytes)) fail("not a module file");
  if (bytes.size() < kHeaderBytes) fail("truncated module file");
  const auto version = get<uint32_t>(bytes, 8);
  if (version != kVersion)
    fail(fmt::format("a module file of version {}, but this gpusim reads version {}", version,
                     kVersion));
  const auto body = bytes.subspan(kHeaderBytes);
  const auto size = get<uint64_t>(bytes, 16);
  if (size != body.size())
    fail(fmt::format("truncated or damaged module file ({} bytes of {})", body.size(), size));
  if (get<uint32_t>(bytes, 12) != checksum(body))
    fail("damaged module file (its checksum is wrong)");

  ByteSource source(body, name + ": damaged module file");
  ArchiveReader reader(source);
  uint32_t uop_list = 0;
  reader.value(uop_list);
  if (uop_list != uop_list_checksum())
    fail("a module file made by another build of gpusim, with other micro-ops");
  Module module;
  describe(reader, module);
  if (source.left() != 0) fail("damaged module file (bytes behind its end)");
  check_module(module, name);
  return module;
}

}  // namespace gpusim
