#include "translator/module_io.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <type_traits>
#include <utility>

#include "device_sim/uir/compare.h"
#include "translator/common/isa_list.h"
#include "translator/passes/operands.h"

namespace gpusim {
namespace {

constexpr char kMagic[8] = {'G', 'P', 'U', 'S', 'I', 'M', 'M', '\n'};
// Raise it with every change of the layout below, of uops.def, or of what micro-ops mean.
constexpr uint32_t kVersion = 4;
constexpr size_t kHeaderBytes = sizeof kMagic + 4 + 4 + 8;
// The contexts of one core; the interpreters' slot numbers are bytes.
constexpr uint32_t kSlotLimit = 256;

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
  for (int* s : {&abi.stack_pointer, &abi.link, &abi.thread_pointer, &abi.core_id, &abi.monitor, &abi.fp_state,
                 &abi.syscall_number, &abi.syscall_result})
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
    for (uint32_t& count : b.classes) a.value(count);
  });
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
  a.list(m.unknown, [&](UnknownInsn& u) {
    a.value(u.pc);
    a.value(u.word);
  });
  a.value(m.phdr_address);
  a.value(m.phdr_count);
  a.value(m.phdr_entry_size);
}

// What backends and host take for granted.
class Checker {
 public:
  Checker(const Module& m, const std::string& name) : m_(m), name_(name) {}

  void check() const {
    check_code_map();
    check_slots();
    check_blocks();
    check_uops();
    check_image();
  }

 private:
  void require(bool ok, const char* what) const {
    if (!ok)
      throw Error(name_ + ": damaged module file (" + what +
                  "). Translate the program again with gpusim translate");
  }

  void check_code_map() const {
    const GuestIsa* isa = find_isa(m_.isa);
    if (!isa) throw Error(name_ + ": a module for ISA '" + m_.isa + "', which this gpusim lacks");
    require(m_.code.pc_shift == isa->pc_shift, "instruction size");
    require(find_cpu(*isa, m_.cpu).has_value(), "CPU");
    require(m_.code.uop_at.size() == m_.code.insn_class.size(), "code map");
    require(!m_.code.uop_at.empty(), "code map");
    const uint64_t limit = uint64_t{1} << 48;
    require(m_.code.text_base < limit &&
                m_.code.uop_at.size() < (limit - m_.code.text_base) >> m_.code.pc_shift,
            "code map");
    for (size_t i = 0; i < m_.code.uop_at.size(); ++i) {
      const uint32_t at = m_.code.uop_at[i];
      if (at != kNoUop) {
        require(
            at < m_.uops.size() && at < m_.uop_block.size() && m_.uop_block[at] < m_.blocks.size(),
            "code map");
        const Block& b = m_.blocks[m_.uop_block[at]];
        require(b.first_uop == at && b.insn_count > 0 &&
                    b.pc == m_.code.text_base + (uint64_t{i} << m_.code.pc_shift),
                "code map");
      }
      require(m_.code.insn_class[i] < kInsnClassCount ||
                  (m_.code.insn_class[i] == 0xff && at == kNoUop),
              "instruction class");
    }
    require((m_.entry - m_.code.text_base) >> m_.code.pc_shift < m_.code.uop_at.size(),
            "entry point");
  }

  bool is_slot(int s) const { return s >= 0 && static_cast<uint32_t>(s) < m_.slot_count; }

  void check_slots() const {
    require(m_.slot_count > 0 && m_.slot_count <= kSlotLimit, "slots");
    for (const SlotName& n : m_.slot_names) require(is_slot(n.slot), "slot names");
    for (const InitialValue& v : m_.initial_values) require(is_slot(v.slot), "initial values");
    const auto optional = [&](int s) { require(s == kNoSlot || is_slot(s), "registers"); };
    const AbiSlots& abi = m_.abi;
    for (const int s : {abi.stack_pointer, abi.link, abi.thread_pointer, abi.core_id, abi.monitor, abi.fp_state,
                        abi.syscall_number, abi.syscall_result})
      optional(s);
    for (const int s : abi.syscall_args) optional(s);
    for (const int s : abi.call_args) optional(s);
    for (const int s : abi.call_float_args) optional(s);
  }

  void check_blocks() const {
    for (const Block& b : m_.blocks) {
      require(b.uop_count > 0 && b.first_uop < m_.uops.size() &&
                  b.uop_count <= m_.uops.size() - b.first_uop,
              "blocks");
      uint64_t instructions = 0;
      for (const uint32_t n : b.classes) instructions += n;
      require(b.insn_count <= 65536 && instructions == b.insn_count, "block counts");
      if (b.insn_count > 0) {
        const uint64_t at = (b.pc - m_.code.text_base) >> m_.code.pc_shift;
        require(b.pc >= m_.code.text_base && at < m_.code.uop_at.size() &&
                    b.insn_count <= m_.code.uop_at.size() - at,
                "block addresses");
      }
    }
  }

  void check_uops() const {
    require(!m_.uops.empty() && m_.uops.size() < kNoUop, "micro-ops");
    require(m_.uop_insn.size() == m_.uops.size() && m_.uop_block.size() == m_.uops.size(),
            "micro-ops");
    for (size_t i = 0; i < m_.uops.size(); ++i) {
      const Uop& u = m_.uops[i];
      require(static_cast<int>(u.op) < kOpCount, "micro-op number");
      require(m_.uop_block[i] < m_.blocks.size(), "micro-op's block");
      require(m_.uop_insn[i] <= m_.blocks[m_.uop_block[i]].insn_count, "micro-op's instruction");
      check_operands(u);
      const ShapeInfo& info = shape_of(u.op);
      if (info.ends_block) {
        require(u.block() < m_.blocks.size(), "end of block");
        require(!info.has_target || u.target() < m_.uops.size(), "target");
      }
      // Whatever does not end a block runs into the next micro-op.
      const bool goes_on = !info.ends_block || info.falls_through;
      require(!goes_on || i + 1 < m_.uops.size(), "last micro-op");
      check_small_fields(u);
      if (u.op == Op::trap)
        require(u.aux > 0 && u.aux <= static_cast<uint8_t>(Fault::kModifiedCode), "trap");
      if (u.op == Op::service)
        require(u.aux <= static_cast<uint8_t>(Service::kReadCounterFrequency), "service");
    }
  }

  void check_small_fields(const Uop& u) const {
    switch (op_info(u.op).shape) {
      case Shape::kAmo:
      case Shape::kCas:
      case Shape::kStx:
        require(u.aux <= 3, "access size");
        break;
      case Shape::kSelCmp:
      case Shape::kSelCmpI:
        require(CompareKind::is_valid(u.imm16), "comparison");
        break;
      case Shape::kAlign:
        require(u.imm16 && !(u.imm16 & (u.imm16 - 1)), "alignment");
        break;
      case Shape::kNote:
        throw Error(name_ + ": made for observing runs; translate the program again");
      case Shape::kJmpReg:
        require(u.aux <= static_cast<uint8_t>(JumpHint::kReturn), "jump hint");
        break;
      default:
        break;
    }
  }

  void check_operands(const Uop& u) const {
    // Runners may look at all four fields, whatever the shape.
    require(is_slot(u.d) && is_slot(u.a) && is_slot(u.b) && is_slot(u.c), "slot");
    require(!shape_of(u.op).fp_state || u.imm16 < kSlotLimit, "slot");
    for_each_operand(u, [&](Slot s, uint8_t reads, uint8_t writes) {
      require(is_slot(s + std::max({1, int{reads}, int{writes}}) - 1), "slot");
    });
  }

  void check_image() const {
    const uint64_t limit = uint64_t{1} << 48;
    uint64_t free_from = 0;
    for (const Segment& s : m_.segments) {
      require(s.address >= free_from && s.address < limit && s.size_bytes <= limit - s.address &&
                  s.bytes.size() <= s.size_bytes && s.flags <= (kRead | kWrite | kExecute),
              "segments");
      free_from = s.address + s.size_bytes;
    }
    for (size_t i = 1; i < m_.symbols.size(); ++i)
      require(m_.symbols[i - 1].address <= m_.symbols[i].address, "symbols");
  }

  const Module& m_;
  const std::string& name_;
};

[[noreturn]] void fail_io(const std::string& path, const char* what) {
  throw Error(fmt::format("{}: {}: {}", path, what, std::strerror(errno)));
}

// Removes the temporary file unless it was renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& path) : path_(path + ".XXXXXX") {
    fd_ = ::mkstemp(path_.data());
    if (fd_ < 0) fail_io(path, "can't write beside it");
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (fd_ >= 0) ::close(fd_);
    if (!renamed_) ::unlink(path_.c_str());
  }

  void write(std::span<const uint8_t> bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail_io(path_, "can't write");
      bytes = bytes.subspan(static_cast<size_t>(n));
    }
  }
  void rename_to(const std::string& path) {
    // mkstemp gives 0600; a module is as public as any build output.
    const mode_t mask = ::umask(0);
    ::umask(mask);
    if (::fchmod(fd_, 0666 & ~mask) != 0 || ::fsync(fd_) != 0) fail_io(path_, "can't write");
    const int fd = std::exchange(fd_, -1);
    if (::close(fd) != 0) fail_io(path_, "can't write");
    if (::rename(path_.c_str(), path.c_str()) != 0) fail_io(path, "can't replace");
    renamed_ = true;
  }

 private:
  std::string path_;
  int fd_ = -1;
  bool renamed_ = false;
};

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

void write_module(const Module& module, const std::string& path) {
  const std::vector<uint8_t> bytes = module_bytes(module);
  TemporaryFile file(path);
  file.write(bytes);
  file.rename_to(path);
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
  Checker(module, name).check();
  return module;
}

}  // namespace gpusim
