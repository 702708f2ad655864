#include "host/run/core_file.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <unordered_map>

#include "device_sim/base/error.h"
#include "device_sim/core/memory_view.h"
#include "host/gdb/registers.h"
#include "host/linux/abi.h"
#include "host/linux/mapped_areas.h"
#include "translator/common/isa_list.h"

namespace gpusim::host {
namespace {

constexpr uint32_t kNtFile = 0x46494c45;
constexpr size_t kNameBytes = 16, kArgumentsBytes = 80;  // of struct elf_prpsinfo

// The core through which a thread's memory can be read.
uint32_t memory_core(const Kernel& kernel, uint32_t core) {
  return kernel.has_core(core) ? core : 0;
}

// Little-endian fields, one after the other; words as wide as the guest's.
class Bytes {
 public:
  explicit Bytes(uint32_t word_bytes) : word_bytes_(word_bytes) {}
  void put(uint64_t value, uint32_t bytes) {
    for (uint32_t i = 0; i < bytes; ++i)
      text_.push_back(static_cast<char>(i < 8 ? value >> 8 * i & 0xff : 0));
  }
  void put_word(uint64_t value) { put(value, word_bytes_); }
  // Zero behind its end; the last byte is zero, too.
  void put_text(const std::string& text, size_t bytes) {
    text_ += text.substr(0, bytes - 1);
    text_.resize(text_.size() + bytes - std::min(text.size(), bytes - 1));
  }
  void put_bytes(std::string_view bytes) { text_ += bytes; }
  void align(size_t to) { text_.resize((text_.size() + to - 1) / to * to); }
  size_t size() const { return text_.size(); }
  const std::string& text() const { return text_; }

 private:
  uint32_t word_bytes_;
  std::string text_;
};

class Notes {
 public:
  Notes(const CoreFileContents& c, const GuestIsa& isa)
      : c_(c),
        kernel_(c.kernel),
        abi_(c.kernel.abi()),
        registers_(
            isa, c.kernel.module(), c.kernel.backend(),
            [&kernel = c.kernel](uint32_t core, Slot slot) { return kernel.slot(core, slot); }),
        kinds_(abi_.core_notes()),
        all_(abi_.word_bytes) {
    size_t number = 0;
    for (const DebugFeature& feature : registers_.target().features)
      for (const DebugRegister& r : feature.registers) numbers_[r.name] = number++;
  }

  std::string text(std::span<const MappedArea> areas) {
    add_thread(c_.core);
    add("CORE", NT_PRPSINFO, process());
    if (!c_.auxiliary_vector.empty()) add("CORE", NT_AUXV, auxiliary_vector());
    if (const std::optional<Bytes> list = files(areas)) add("CORE", kNtFile, *list);
    for (const uint32_t core : c_.others) add_thread(core);
    return all_.text();
  }

 private:
  Bytes bytes() const { return Bytes(abi_.word_bytes); }

  void add(const char* owner, uint32_t type, const Bytes& description) {
    const size_t name_bytes = std::strlen(owner) + 1;
    all_.put(name_bytes, 4);
    all_.put(description.size(), 4);
    all_.put(type, 4);
    all_.put_text(owner, name_bytes);
    all_.align(4);
    all_.put_bytes(description.text());
    all_.align(4);
  }

  void put_registers(Bytes& to, const CoreNote& note, uint32_t core, uint64_t pc) const {
    const size_t begin = to.size();
    for (const auto& [name, size] : note.registers) {
      const std::vector<uint8_t> value = registers_.read(core, numbers_.at(name), pc);
      for (uint32_t i = 0; i < size; ++i) to.put(i < value.size() ? value[i] : 0, 1);
    }
    to.put(0, static_cast<uint32_t>(note.bytes - (to.size() - begin)));
  }

  // struct elf_prstatus, then further sets of registers.
  void add_thread(uint32_t core) {
    const uint64_t pc = c_.pc_of(core);
    const int32_t pid = static_cast<int32_t>(kernel_.process_of(core).pid);
    Bytes status = bytes();
    const auto signal = static_cast<uint32_t>(c_.signal);  // of all threads, as Linux has it
    status.put(signal, 4);
    status.put(0, 8);  // code, errno
    status.put(signal, 2);
    status.align(abi_.word_bytes);
    const Thread* const thread = kernel_.find_thread(core);
    status.put_word(kernel_.pending(core));
    status.put_word(thread ? thread->mask : 0);
    status.put(static_cast<uint32_t>(kernel_.tid(core)), 4);
    status.put(static_cast<uint32_t>(pid - 1), 4);
    status.put(static_cast<uint32_t>(pid), 4);
    status.put(static_cast<uint32_t>(pid), 4);
    for (int i = 0; i < 4 * 2; ++i) status.put_word(0);  // times
    put_registers(status, kinds_.front(), core, pc);
    status.put(1, 4);  // registers for floating point follow
    status.align(abi_.word_bytes);
    add("CORE", NT_PRSTATUS, status);
    for (size_t i = 1; i < kinds_.size(); ++i) {
      Bytes set = bytes();
      put_registers(set, kinds_[i], core, pc);
      add(kinds_[i].owner, kinds_[i].type, set);
    }
  }

  // struct elf_prpsinfo
  Bytes process() const {
    const int32_t pid = static_cast<int32_t>(kernel_.process_of(c_.core).pid);
    const std::string& program = kernel_.paths().program();
    Bytes info = bytes();
    info.put(0, 1);
    info.put('R', 1);
    info.put(0, 2);
    info.align(abi_.word_bytes);
    info.put_word(0);
    info.put(::getuid(), 4);
    info.put(::getgid(), 4);
    info.put(static_cast<uint32_t>(pid), 4);
    info.put(static_cast<uint32_t>(pid - 1), 4);
    info.put(static_cast<uint32_t>(pid), 4);
    info.put(static_cast<uint32_t>(pid), 4);
    info.put_text(program.substr(program.rfind('/') + 1), kNameBytes);
    info.put_text(c_.arguments, kArgumentsBytes);
    return info;
  }

  Bytes auxiliary_vector() const {
    Bytes vector = bytes();
    for (const auto& [type, value] : c_.auxiliary_vector) {
      vector.put_word(type);
      vector.put_word(value);
    }
    vector.put_word(AT_NULL);
    vector.put_word(0);
    return vector;
  }

  // Pages of the program's file that are in memory, by the program headers that it has there.
  std::optional<Bytes> files(std::span<const MappedArea> areas) const {
    struct Mapped {
      uint64_t begin, end, page;
    };
    std::vector<Mapped> mapped;
    const Module& module = kernel_.module();
    const bool is_narrow = abi_.word_bytes == 4;
    for (uint32_t i = 0; module.phdr_address != 0 && i < module.phdr_count; ++i) {
      std::vector<uint8_t> raw(module.phdr_entry_size);
      const uint64_t at = module.phdr_address + uint64_t{i} * module.phdr_entry_size;
      if (raw.size() < (is_narrow ? sizeof(Elf32_Phdr) : sizeof(Elf64_Phdr)) ||
          !kernel_.backend().read_memory(memory_core(kernel_, c_.core), at, raw))
        return std::nullopt;
      Elf64_Phdr header{};
      if (is_narrow) {
        Elf32_Phdr narrow;
        std::memcpy(&narrow, raw.data(), sizeof narrow);
        header = {.p_type = narrow.p_type,
                  .p_flags = narrow.p_flags,
                  .p_offset = narrow.p_offset,
                  .p_vaddr = narrow.p_vaddr,
                  .p_paddr = 0,
                  .p_filesz = narrow.p_filesz,
                  .p_memsz = narrow.p_memsz,
                  .p_align = narrow.p_align};
      } else {
        std::memcpy(&header, raw.data(), sizeof header);
      }
      if (header.p_type != PT_LOAD || header.p_filesz == 0) continue;
      mapped.push_back({page_down(header.p_vaddr), page_up(header.p_vaddr + header.p_filesz),
                        page_down(header.p_offset) / kPageSize});
    }
    // Position-independent programs lie elsewhere than their headers say.
    const auto is_there = [&](const Mapped& m) {
      return std::any_of(areas.begin(), areas.end(), [&](const MappedArea& a) {
        return a.begin <= m.begin && m.begin < a.end;
      });
    };
    std::erase_if(mapped, [&](const Mapped& m) { return !is_there(m); });
    if (mapped.empty()) return std::nullopt;
    Bytes list = bytes();
    list.put_word(mapped.size());
    list.put_word(kPageSize);
    for (const Mapped& m : mapped) {
      list.put_word(m.begin);
      list.put_word(m.end);
      list.put_word(m.page);
    }
    const std::string& program = kernel_.paths().program();
    for (size_t i = 0; i < mapped.size(); ++i) list.put_text(program, program.size() + 1);
    return list;
  }

  const CoreFileContents& c_;
  Kernel& kernel_;
  const LinuxAbi& abi_;
  gdb::RegisterFile registers_;
  const std::vector<CoreNote> kinds_;
  std::unordered_map<std::string, size_t> numbers_;
  Bytes all_;
};

// The file while it is being written: beside its place, gone if that fails.
class Part {
 public:
  explicit Part(const OutputFile& file) : file_(file) {
    if (!file.is_plain()) fail("it has to be a plain file");
    name_ = fmt::format("{}.{}.core.tmp", file.name(), ::getpid());
    fd_ = FileDescriptor(::openat(file.folder(), name_.c_str(),
                                  O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!fd_) fail(std::strerror(errno));
  }
  ~Part() {
    if (!name_.empty()) ::unlinkat(file_.folder(), name_.c_str(), 0);
  }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  void write(uint64_t at, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(at));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail(std::strerror(errno));
      bytes.remove_prefix(static_cast<size_t>(n));
      at += static_cast<uint64_t>(n);
    }
  }
  void finish(uint64_t size) {
    if (::ftruncate(fd_.get(), static_cast<off_t>(size)) < 0) fail(std::strerror(errno));
    if (::close(fd_.release()) < 0) fail(std::strerror(errno));
    if (::renameat(file_.folder(), name_.c_str(), file_.folder(), file_.name().c_str()) < 0)
      fail(std::strerror(errno));
    name_.clear();
  }

 private:
  [[noreturn]] void fail(const char* why) const {
    throw Error(fmt::format("--core-file {}: {}", file_.path(), why));
  }

  const OutputFile& file_;
  std::string name_;
  FileDescriptor fd_;
};

struct Load {
  uint64_t begin, end, offset;
  uint8_t rights;
};

template <class Header, class Program, class Section>
std::string headers(const Module& module, std::span<const Load> loads, uint64_t notes_bytes,
                    uint64_t* notes_at) {
  using Word = decltype(Program::p_memsz);
  const size_t count = loads.size() + 1;
  const bool is_counted_elsewhere = count >= PN_XNUM;  // by a section header
  Header header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = sizeof(Word) == 8 ? ELFCLASS64 : ELFCLASS32;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_CORE;
  header.e_machine = find_isa(module.isa)->elf_machine;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof(Header);
  header.e_phentsize = sizeof(Program);
  header.e_phoff = sizeof(Header);
  header.e_phnum = is_counted_elsewhere ? PN_XNUM : static_cast<uint16_t>(count);
  const uint64_t behind = sizeof(Header) + count * sizeof(Program);
  Section section{};
  if (is_counted_elsewhere) {
    header.e_shoff = static_cast<Word>(behind);
    header.e_shentsize = sizeof(Section);
    header.e_shnum = 1;
    section.sh_info = static_cast<uint32_t>(count);
    section.sh_size = 1;
  }
  *notes_at = behind + (is_counted_elsewhere ? sizeof(Section) : 0);
  std::string text(reinterpret_cast<const char*>(&header), sizeof header);
  const auto add = [&](const auto& part) {
    text.append(reinterpret_cast<const char*>(&part), sizeof part);
  };
  Program note{};
  note.p_type = PT_NOTE;
  note.p_offset = static_cast<Word>(*notes_at);
  note.p_filesz = static_cast<Word>(notes_bytes);
  note.p_align = 4;
  add(note);
  const uint64_t first = page_up(*notes_at + notes_bytes);
  for (const Load& load : loads) {
    Program p{};
    p.p_type = PT_LOAD;
    p.p_offset = static_cast<Word>(first + load.offset);
    p.p_vaddr = static_cast<Word>(load.begin);
    p.p_memsz = p.p_filesz = static_cast<Word>(load.end - load.begin);
    p.p_flags = (load.rights & kRead ? PF_R : 0u) | (load.rights & kWrite ? PF_W : 0u) |
                (load.rights & kExecute ? PF_X : 0u);
    p.p_align = kPageSize;
    add(p);
  }
  if (is_counted_elsewhere) add(section);
  return text;
}

}  // namespace

void write_core_file(const OutputFile& file, const CoreFileContents& c) {
  Kernel& kernel = c.kernel;
  const Module& module = kernel.module();
  const GuestIsa& isa = *find_isa(module.isa);
  // Threads that the program makes have stacks among its mappings.
  std::vector<uint32_t> stacks;
  if (kernel.is_private()) {
    stacks = {c.core};
  } else if (kernel.starts_alone()) {
    stacks = {0};
  } else {
    stacks = c.others;
    stacks.push_back(c.core);
  }
  const std::vector<MappedArea> areas =
      mapped_areas(kernel, kernel.process_of(c.core), memory_core(kernel, c.core), stacks);
  std::vector<Load> loads;
  uint64_t size = 0;
  for (const MappedArea& area : areas) {
    if (area.rights == 0) continue;
    // Segments that share a page have it twice.
    const uint64_t begin = loads.empty() ? area.begin : std::max(area.begin, loads.back().end);
    if (begin >= area.end) continue;
    loads.push_back({begin, area.end, size, area.rights});
    size += area.end - begin;
  }
  const std::string notes = Notes(c, isa).text(areas);
  uint64_t notes_at = 0;
  const std::string head =
      isa.register_bits == 32
          ? headers<Elf32_Ehdr, Elf32_Phdr, Elf32_Shdr>(module, loads, notes.size(), &notes_at)
          : headers<Elf64_Ehdr, Elf64_Phdr, Elf64_Shdr>(module, loads, notes.size(), &notes_at);
  const uint64_t first = page_up(notes_at + notes.size());
  if (isa.register_bits == 32 && first + size > UINT32_MAX)
    throw Error(fmt::format("--core-file {}: a file of this guest ends at 4 GiB", file.path()));
  Part part(file);
  part.write(0, head);
  part.write(notes_at, notes);
  constexpr uint64_t kPiece = 64 * kPageSize;
  std::vector<uint8_t> piece;
  for (const Load& load : loads) {
    for (uint64_t at = load.begin; at < load.end; at += kPiece) {
      piece.assign(std::min(kPiece, load.end - at), 0);
      if (!kernel.backend().read_memory(memory_core(kernel, c.core), at, piece)) continue;
      for (size_t page = 0; page < piece.size(); page += kPageSize) {
        const auto bytes = piece.begin() + static_cast<std::ptrdiff_t>(page);
        if (std::all_of(bytes, bytes + kPageSize, [](uint8_t b) { return b == 0; })) continue;
        part.write(first + load.offset + (at - load.begin) + page,
                   {reinterpret_cast<const char*>(&*bytes), kPageSize});
      }
    }
  }
  part.finish(first + size);
}

}  // namespace gpusim::host
