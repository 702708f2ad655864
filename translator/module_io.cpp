#include "translator/module_io.h"

#include <fmt/format.h>
#include <zlib.h>

#include <cstring>
#include <type_traits>
#include <utility>

#include "translator/module_check.h"

namespace gpusim {
namespace {

constexpr char kMagic[8] = {'G', 'P', 'U', 'S', 'I', 'M', 'M', '\n'};
// Raise it with every change of the layout below, of uops.def, or of what micro-ops mean.
constexpr uint32_t kVersion = 5;
constexpr size_t kHeaderBytes = sizeof kMagic + 4 + 4 + 8;

uint32_t checksum(std::span<const uint8_t> bytes) {
  return static_cast<uint32_t>(crc32_z(crc32_z(0, nullptr, 0), bytes.data(), bytes.size()));
}

// Refuses a file that another list of micro-ops was compiled into.
uint32_t uop_list_checksum() {
  std::string names;
  for (const OpInfo& info : kOpInfo)
    names += fmt::format("{}:{} ", info.name, static_cast<int>(info.shape));
  return checksum({reinterpret_cast<const uint8_t*>(names.data()), names.size()});
}

// One description of the layout serves writing and reading: describe(archive, module).
class Writer {
 public:
  static constexpr bool kReading = false;

  template <class T>
  requires std::is_arithmetic_v<T>
  void value(T& v) {
    const auto* p = reinterpret_cast<const uint8_t*>(&v);
    bytes_.insert(bytes_.end(), p, p + sizeof v);
  }
  template <class V>
  void plain_array(V& v) {
    uint64_t count = v.size();
    value(count);
    const auto* p = reinterpret_cast<const uint8_t*>(v.data());
    bytes_.insert(bytes_.end(), p, p + v.size() * sizeof(*v.data()));
  }
  template <class T, class F>
  void list(std::vector<T>& v, F each) {
    uint64_t count = v.size();
    value(count);
    for (T& item : v) each(item);
  }
  std::vector<uint8_t> take() { return std::move(bytes_); }

 private:
  std::vector<uint8_t> bytes_;
};

class Reader {
 public:
  static constexpr bool kReading = true;

  Reader(std::span<const uint8_t> bytes, const std::string& name) : rest_(bytes), name_(name) {}

  template <class T>
  requires std::is_arithmetic_v<T>
  void value(T& v) { std::memcpy(&v, take(sizeof v).data(), sizeof v); }
  // `bool` objects may only hold 0 and 1.
  void value(bool& v) { v = take(1)[0] != 0; }
  template <class V>
  void plain_array(V& v) {
    using T = typename V::value_type;
    const uint64_t count = read_count(sizeof(T));
    v.resize(count);
    if (count) std::memcpy(v.data(), take(count * sizeof(T)).data(), count * sizeof(T));
  }
  template <class T, class F>
  void list(std::vector<T>& v, F each) {
    const uint64_t count = read_count(1);
    for (uint64_t i = 0; i < count; ++i) each(v.emplace_back());
  }
  bool at_end() const { return rest_.empty(); }

 private:
  std::span<const uint8_t> take(uint64_t size) {
    if (size > rest_.size()) throw Error(name_ + ": damaged module file (a table is cut short)");
    const auto part = rest_.first(size);
    rest_ = rest_.subspan(size);
    return part;
  }
  uint64_t read_count(size_t item_bytes) {
    uint64_t count = 0;
    value(count);
    if (count > rest_.size() / item_bytes)
      throw Error(name_ + ": damaged module file (a table is longer than the file)");
    return count;
  }

  std::span<const uint8_t> rest_;
  const std::string& name_;
};

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
  a.plain_array(m.isa);
  a.plain_array(m.cpu);
  a.value(m.entry);
  a.plain_array(m.uops);
  a.plain_array(m.uop_insn);
  a.plain_array(m.uop_block);
  a.list(m.blocks, [&](Block& b) {
    a.value(b.pc);
    a.value(b.insn_count);
    a.value(b.first_uop);
    a.value(b.uop_count);
    a.value(b.first_offset);
    for (uint32_t& count : b.classes) a.value(count);
  });
  a.plain_array(m.insn_offsets);
  a.value(m.code.text_base);
  a.value(m.code.pc_shift);
  a.plain_array(m.code.uop_at);
  a.plain_array(m.code.insn_class);
  a.value(m.slot_count);
  a.list(m.slot_names, [&](SlotName& n) {
    a.value(n.slot);
    a.plain_array(n.name);
  });
  a.list(m.initial_values, [&](InitialValue& v) {
    a.value(v.slot);
    a.value(v.value);
  });
  describe(a, m.abi);
  a.list(m.segments, [&](Segment& s) {
    a.value(s.address);
    a.value(s.size_bytes);
    a.value(s.flags);
    a.plain_array(s.bytes);
  });
  a.list(m.symbols, [&](Symbol& s) {
    a.value(s.address);
    a.value(s.size_bytes);
    a.plain_array(s.name);
    a.value(s.is_function);
  });
  a.plain_array(m.unknown);
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
  Writer payload;
  uint32_t uop_list = uop_list_checksum();
  payload.value(uop_list);
  // A writer only reads what it is shown.
  describe(payload, const_cast<Module&>(module));
  const std::vector<uint8_t> body = payload.take();
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

  Reader reader(body, name);
  uint32_t uop_list = 0;
  reader.value(uop_list);
  if (uop_list != uop_list_checksum())
    fail("a module file made by another build of gpusim, with other micro-ops");
  Module module;
  describe(reader, module);
  if (!reader.at_end()) fail("damaged module file (bytes behind its end)");
  check_module(module, name);
  return module;
}

}  // namespace gpusim
