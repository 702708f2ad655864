#include "translator/elf/elf_file.h"

#include <elf.h>
#include <fmt/format.h>
#include <gelf.h>
#include <libelf.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <string_view>
#include <tuple>
#include <utility>

#include "device_sim/base/error.h"
#include "translator/common/limits.h"

namespace gpusim {
namespace {

std::string machine_name(uint16_t machine) {
  switch (machine) {
    case EM_SPARC:
    case EM_SPARCV9:
      return "SPARC";
    case EM_386:
      return "x86 (32 bit)";
    case EM_68K:
      return "m68k";
    case EM_MIPS:
      return "MIPS";
    case EM_PPC:
      return "PowerPC";
    case EM_PPC64:
      return "PowerPC64";
    case EM_S390:
      return "S/390";
    case EM_ARM:
      return "Arm (32 bit)";
    case EM_SH:
      return "SuperH";
    case EM_IA_64:
      return "IA-64";
    case EM_X86_64:
      return "x86-64";
    case EM_AARCH64:
      return "AArch64";
    case EM_RISCV:
      return "RISC-V";
    case EM_BPF:
      return "BPF";
    case EM_CUDA:
      return "CUDA";
    default:
      return fmt::format("ELF machine number {}", machine);
  }
}

std::string isa_names() {
  std::string names;
  for (const GuestIsa* isa : all_isas())
    names += (names.empty() ? "" : ", ") + std::string(isa->name);
  return names;
}

struct ElfCloser {
  void operator()(Elf* e) const { elf_end(e); }
};

class Reader {
 public:
  Reader(std::span<const uint8_t> bytes, const std::string& name, Dynamic dynamic, uint64_t base)
      : bytes_(bytes), name_(name), dynamic_(dynamic), base_(base) {}

  ElfFile read() {
    check_identity();
    open();
    read_header();
    read_program_headers();
    read_sections();
    find_code();
    check_entry();
    finish_symbols();
    return std::move(out_);
  }

 private:
  template <class... A>
  [[noreturn]] void fail(fmt::format_string<A...> format, A&&... args) const {
    throw Error(name_ + ": " + fmt::format(format, std::forward<A>(args)...));
  }

  bool in_file(uint64_t offset, uint64_t size) const {
    return offset <= bytes_.size() && size <= bytes_.size() - offset;
  }

  // Linux would start the interpreter that the first line names.
  [[noreturn]] void fail_as_script() const {
    const std::string_view text(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
    std::string_view line = text.substr(2, std::min<size_t>(text.find('\n'), 256) - 2);
    const auto trim = [](std::string_view words) {
      constexpr std::string_view kGaps = " \t\r";
      const size_t first = words.find_first_not_of(kGaps);
      if (first == words.npos) return std::string_view();
      return words.substr(first, words.find_last_not_of(kGaps) - first + 1);
    };
    line = trim(line);
    const size_t end = std::min(line.find_first_of(" \t"), line.size());
    const std::string_view interpreter = line.substr(0, end), argument = trim(line.substr(end));
    fail("a script for {}, not a program. Start its interpreter, from a FOLDER that has it for one "
         "of {}: gpusim run --sysroot FOLDER --root . FOLDER{} -- {}{}{}",
         interpreter, isa_names(), interpreter, argument, argument.empty() ? "" : " ", name_);
  }

  void check_identity() {
    if (bytes_.size() > 2 && bytes_[0] == '#' && bytes_[1] == '!') fail_as_script();
    if (bytes_.size() < SELFMAG || std::memcmp(bytes_.data(), ELFMAG, SELFMAG) != 0)
      fail("not an ELF file. Give a program for Linux ({}) or a module made by gpusim translate",
           isa_names());
    is_32_ = bytes_.size() > EI_CLASS && bytes_[EI_CLASS] == ELFCLASS32;
    const size_t header_bytes = is_32_ ? sizeof(Elf32_Ehdr) : sizeof(Elf64_Ehdr);
    if (bytes_.size() < header_bytes)
      fail("truncated ELF header: {} bytes of {}. Copy or build the file again", bytes_.size(),
           header_bytes);
    const bool big_endian = bytes_[EI_DATA] == ELFDATA2MSB;
    if (!big_endian && bytes_[EI_DATA] != ELFDATA2LSB)
      fail("damaged ELF header: unknown byte order {}. Build the file again", bytes_[EI_DATA]);
    const auto machine = static_cast<uint16_t>(big_endian ? bytes_[18] << 8 | bytes_[19]
                                                          : bytes_[19] << 8 | bytes_[18]);
    if (big_endian)
      fail("a big-endian program for {}; only little-endian ones can be run. Build it for {}",
           machine_name(machine), isa_names());
    if (!is_32_ && bytes_[EI_CLASS] != ELFCLASS64)
      fail("damaged ELF header: unknown class {}. Build the file again", bytes_[EI_CLASS]);
    out_.isa = find_isa_for_elf(machine, is_32_ ? 32 : 64);
    if (!out_.isa && find_isa_for_elf(machine, is_32_ ? 64 : 32))
      fail("a {}-bit program for {}; only {}-bit ones can be run. Build it for {}",
           is_32_ ? 32 : 64, machine_name(machine), is_32_ ? 64 : 32, isa_names());
    if (!out_.isa)
      fail("a program for {}, which has no translator. Build it for {}", machine_name(machine),
           isa_names());
  }

  void open() {
    elf_version(EV_CURRENT);
    // libelf reads an image of the host's byte order and class in place and does not write to it.
    elf_.reset(
        elf_memory(const_cast<char*>(reinterpret_cast<const char*>(bytes_.data())), bytes_.size()));
    if (!elf_ || elf_kind(elf_.get()) != ELF_K_ELF)
      fail("damaged ELF file ({}). Build the file again", elf_errmsg(-1));
  }

  void read_header() {
    if (!gelf_getehdr(elf_.get(), &header_))
      fail("damaged ELF header ({}). Build the file again", elf_errmsg(-1));
    switch (header_.e_type) {
      case ET_EXEC:
        break;
      case ET_DYN:
        bias_ = base_;
        break;
      case ET_REL:
        fail("an object file, not a program. Link it with -static");
      case ET_CORE:
        fail("a core dump, not a program");
      default:
        fail("damaged ELF header: unknown type {}. Build the file again", header_.e_type);
    }
    const size_t count = header_.e_phnum;
    if (count == 0) fail("no program headers: nothing to load. Link the program with -static");
    const size_t entry_bytes = is_32_ ? sizeof(Elf32_Phdr) : sizeof(Elf64_Phdr);
    if (count >= PN_XNUM || header_.e_phentsize != entry_bytes ||
        !in_file(header_.e_phoff, count * entry_bytes))
      fail(
          "program headers at offset {:#x} lie outside of the file ({} bytes): it is truncated or "
          "damaged. Copy or build it again",
          header_.e_phoff, bytes_.size());
    out_.phdr_count = static_cast<uint16_t>(count);
    out_.phdr_entry_size = header_.e_phentsize;
  }

  void read_program_headers() {
    bool needs_loader = false;
    uint64_t lowest = kAddressLimit;
    std::vector<GElf_Phdr> headers(out_.phdr_count);
    for (int i = 0; i < out_.phdr_count; ++i) {
      GElf_Phdr& p = headers[static_cast<size_t>(i)];
      if (!gelf_getphdr(elf_.get(), i, &p))
        fail("damaged program header {} ({}). Build the file again", i, elf_errmsg(-1));
      if (p.p_type == PT_INTERP) {
        needs_loader = true;
        if (dynamic_ != Dynamic::kRefused) read_interpreter(p);
      }
      if (p.p_type == PT_DYNAMIC && needs_libraries(p)) needs_loader = true;
      if (p.p_type == PT_LOAD) lowest = std::min<uint64_t>(lowest, p.p_vaddr);
    }
    if (needs_loader && dynamic_ == Dynamic::kRefused)
      fail("a dynamically linked program. Link it with -static");
    if (needs_loader && out_.interpreter.empty())
      fail("a shared library, not a program: it names no interpreter (PT_INTERP)");
    if (header_.e_type == ET_DYN && lowest >= kPieBase && !needs_loader) bias_ = 0;
    for (size_t i = 0; i < headers.size(); ++i)
      if (headers[i].p_type == PT_LOAD && out_.segments.size() <= kSegmentLimit &&
          file_bytes_loaded_ <= 2 * bytes_.size())
        add_segment(i, headers[i]);
    if (out_.segments.size() > kSegmentLimit || file_bytes_loaded_ > 2 * bytes_.size())
      fail(
          "{} segments that load {} bytes from a file of {}: damaged program headers. Build the "
          "file again",
          out_.segments.size(), file_bytes_loaded_, bytes_.size());
    if (out_.segments.empty()) fail("no loadable segment. Link the program with -static");

    std::sort(out_.segments.begin(), out_.segments.end(),
              [](const Segment& a, const Segment& b) { return a.address < b.address; });
    for (size_t i = 1; i < out_.segments.size(); ++i) {
      const Segment &a = out_.segments[i - 1], &b = out_.segments[i];
      if (b.address - a.address < a.size_bytes)
        fail("segments at {:#x} and {:#x} overlap. Check the linker script", a.address, b.address);
    }
    const Segment& last = out_.segments.back();
    const uint64_t span = last.address + last.size_bytes - out_.segments.front().address;
    if (span > kImageLimit)
      fail(
          "segments spread over {:#x} bytes, more than {:#x}. Place them closer together in the "
          "linker script",
          span, kImageLimit);
    for (const GElf_Phdr& p : headers)  // as Linux: where the file's headers are in memory
      if (p.p_type == PT_LOAD && header_.e_phoff >= p.p_offset &&
          header_.e_phoff - p.p_offset + uint64_t{out_.phdr_count} * out_.phdr_entry_size <=
              p.p_filesz)
        out_.phdr_address = p.p_vaddr + bias_ + (header_.e_phoff - p.p_offset);
  }

  void read_interpreter(const GElf_Phdr& p) {
    if (!in_file(p.p_offset, p.p_filesz) || p.p_filesz < 2 || p.p_filesz > kLongestPath ||
        bytes_[p.p_offset + p.p_filesz - 1] != 0)
      fail("damaged name of the interpreter (PT_INTERP). Build the file again");
    out_.interpreter = reinterpret_cast<const char*>(bytes_.data() + p.p_offset);
  }

  bool needs_libraries(const GElf_Phdr& p) const {
    if (!in_file(p.p_offset, p.p_filesz)) return false;  // a later check complains
    return is_32_ ? needs_libraries<Elf32_Dyn>(p) : needs_libraries<Elf64_Dyn>(p);
  }
  template <class Dyn>
  bool needs_libraries(const GElf_Phdr& p) const {
    for (uint64_t at = 0; at + sizeof(Dyn) <= p.p_filesz; at += sizeof(Dyn)) {
      Dyn d;
      std::memcpy(&d, bytes_.data() + p.p_offset + at, sizeof d);
      if (d.d_tag == DT_NEEDED) return true;
      if (d.d_tag == DT_NULL) break;
    }
    return false;
  }

  void add_segment(size_t index, const GElf_Phdr& p) {
    if (p.p_filesz > p.p_memsz)
      fail("segment {}: {:#x} bytes in the file but {:#x} in memory. Build the file again", index,
           p.p_filesz, p.p_memsz);
    // Linkers give a segment of zeroes only an offset past the end.
    if (p.p_filesz != 0 && !in_file(p.p_offset, p.p_filesz))
      fail(
          "segment {}: bytes {:#x} to {:#x} lie outside of the file ({} bytes): it is truncated "
          "or damaged. Copy or build it again",
          index, p.p_offset, p.p_offset + p.p_filesz, bytes_.size());
    if (p.p_vaddr >= kAddressLimit - bias_ || p.p_memsz > kAddressLimit - bias_ - p.p_vaddr)
      fail(
          "segment {}: address {:#x} with {:#x} bytes is outside of the 48-bit address space. "
          "Check the linker script",
          index, p.p_vaddr, p.p_memsz);
    if (p.p_memsz == 0) return;
    if (const uint64_t begin = p.p_vaddr + bias_;
        is_32_ && (begin < kBegin32 || begin + p.p_memsz > kEnd32))
      fail(
          "segment {}: address {:#x} with {:#x} bytes is outside of {:#x} to {:#x}, where 32-bit "
          "programs may be. Check the linker script",
          index, begin, p.p_memsz, kBegin32, kEnd32);
    Segment s;
    s.address = p.p_vaddr + bias_;
    s.size_bytes = p.p_memsz;
    s.flags =
        static_cast<uint8_t>((p.p_flags & PF_R ? kRead : 0) | (p.p_flags & PF_W ? kWrite : 0) |
                             (p.p_flags & PF_X ? kExecute : 0));
    file_bytes_loaded_ += p.p_filesz;
    if (p.p_filesz != 0) {
      const auto from = bytes_.begin() + static_cast<ptrdiff_t>(p.p_offset);
      s.bytes.assign(from, from + static_cast<ptrdiff_t>(p.p_filesz));
    }
    out_.segments.push_back(std::move(s));
  }

  // Section headers are optional: a damaged table only costs symbols and a coarser idea of code.
  void read_sections() {
    Elf_Scn* dynamic_symbols = nullptr;
    bool has_symbols = false;
    for (Elf_Scn* scn = nullptr; (scn = elf_nextscn(elf_.get(), scn)) != nullptr;) {
      GElf_Shdr s;
      if (!gelf_getshdr(scn, &s)) continue;
      if (s.sh_type == SHT_PROGBITS && (s.sh_flags & SHF_EXECINSTR) && (s.sh_flags & SHF_ALLOC) &&
          s.sh_addr < kAddressLimit && s.sh_size < kAddressLimit)
        sections_.push_back({s.sh_addr + bias_, s.sh_addr + bias_ + s.sh_size});
      if (s.sh_type == SHT_DYNSYM) dynamic_symbols = scn;
      if (s.sh_type == SHT_SYMTAB) {
        read_symbols(scn);
        has_symbols = true;
      }
    }
    if (!has_symbols && dynamic_symbols) read_symbols(dynamic_symbols);
  }

  void read_symbols(Elf_Scn* scn) {
    GElf_Shdr s;
    Elf_Data* const data = elf_getdata(scn, nullptr);
    if (!data || !data->d_buf || !gelf_getshdr(scn, &s)) return;
    GElf_Sym symbol;
    for (int i = 0; gelf_getsym(data, i, &symbol); ++i) {
      const int type = ELF64_ST_TYPE(symbol.st_info);
      const char* text = elf_strptr(elf_.get(), s.sh_link, symbol.st_name);
      if (!text || !*text || symbol.st_shndx == SHN_UNDEF || symbol.st_value >= kAddressLimit)
        continue;
      if (text[0] == '$') {
        const MappingSymbol says = out_.isa->mapping_symbol(text);
        if (says != MappingSymbol::kNone)
          mapping_.push_back({symbol.st_value + bias_, says == MappingSymbol::kData});
        continue;
      }
      if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_OBJECT && type != STT_NOTYPE)
        continue;
      const bool absolute = symbol.st_shndx == SHN_ABS;
      const uint64_t address = symbol.st_value + (absolute ? 0 : bias_);
      found_.push_back({{address, std::min(symbol.st_size, kAddressLimit), text,
                         type == STT_FUNC || type == STT_GNU_IFUNC},
                        ELF64_ST_BIND(symbol.st_info) == STB_GLOBAL,
                        type == STT_NOTYPE && !absolute});
    }
  }

  void find_code() {
    std::vector<AddressRange> wanted = sections_;
    if (wanted.empty()) wanted.push_back({0, kAddressLimit});
    std::sort(wanted.begin(), wanted.end(),
              [](const auto& a, const auto& b) { return a.begin < b.begin; });
    const uint64_t step = out_.isa->insn_align;
    bool executable = false;
    for (const Segment& s : out_.segments) {
      if (!(s.flags & kExecute)) continue;
      executable = true;
      uint64_t done = s.address;
      for (const AddressRange& w : wanted) {
        const uint64_t begin = (std::max(w.begin, done) + step - 1) & ~(step - 1);
        const uint64_t end = std::min(w.end, s.address + s.bytes.size()) & ~(step - 1);
        if (begin >= end) continue;
        out_.code.push_back({begin, end});
        done = end;
      }
    }
    if (!executable)
      fail("no executable segment: there is no code to run. Check the linker script");
    if (out_.code.empty()) fail("the executable segments hold no code. Check the linker script");
    const uint64_t span = out_.code.back().end - out_.code.front().begin;
    if (span > kCodeLimit)
      fail(
          "code spreads over {:#x} bytes, more than {:#x}. Place it closer together in the linker "
          "script",
          span, kCodeLimit);

    std::sort(mapping_.begin(), mapping_.end());
    for (size_t i = 0; i < mapping_.size(); ++i) {
      const auto [address, is_data] = mapping_[i];
      const uint64_t end = i + 1 < mapping_.size() ? mapping_[i + 1].first : out_.code.back().end;
      if (is_data && address < end) out_.data_in_code.push_back({address, end});
    }
  }

  bool in_code(uint64_t address) const {
    const auto after =
        std::upper_bound(out_.code.begin(), out_.code.end(), address,
                         [](uint64_t a, const AddressRange& r) { return a < r.begin; });
    return after != out_.code.begin() && std::prev(after)->contains(address);
  }

  void check_entry() {
    out_.entry = header_.e_entry + bias_;
    if (!in_code(out_.entry))
      fail("the entry point {:#x} is not in code. Check the linker script and its ENTRY",
           out_.entry);
    if (out_.entry & (out_.isa->insn_align - 1))
      fail("the entry point {:#x} is not at an instruction's alignment. Build the file again",
           out_.entry);
  }

  // Of several names for one address the first one is what messages show.
  void finish_symbols() {
    for (Found& f : found_)
      if (f.untyped && in_code(f.symbol.address)) f.symbol.is_function = true;
    std::stable_sort(found_.begin(), found_.end(), [](const Found& a, const Found& b) {
      const auto key = [](const Found& f) {
        return std::tuple(f.symbol.address, !f.symbol.is_function, f.untyped, !f.global,
                          f.symbol.name.size());
      };
      return key(a) < key(b);
    });
    out_.symbols.reserve(found_.size());
    for (Found& f : found_) out_.symbols.push_back(std::move(f.symbol));
  }

  struct Found {
    Symbol symbol;
    bool global, untyped;
  };

  std::span<const uint8_t> bytes_;
  static constexpr uint64_t kLongestPath = 4096;
  const std::string& name_;
  const Dynamic dynamic_;
  const uint64_t base_;
  std::unique_ptr<Elf, ElfCloser> elf_;
  GElf_Ehdr header_{};
  bool is_32_ = false;  // its class
  uint64_t bias_ = 0, file_bytes_loaded_ = 0;
  std::vector<AddressRange> sections_;
  std::vector<std::pair<uint64_t, bool>> mapping_;
  std::vector<Found> found_;
  ElfFile out_;
};

}  // namespace

std::vector<CodePiece> ElfFile::pieces() const {
  std::vector<CodePiece> pieces;
  const uint64_t align = isa->insn_align;
  auto data = data_in_code.begin();
  auto segment = segments.begin();
  for (const AddressRange& range : code) {
    while (range.begin >= segment->address + segment->size_bytes) ++segment;
    const auto bytes = std::span(segment->bytes)
                           .subspan(range.begin - segment->address, range.end - range.begin);
    const auto add = [&](uint64_t begin, uint64_t end, bool is_data) {
      if (begin < end)
        pieces.push_back({begin, end - begin, bytes.subspan(begin - range.begin), is_data});
    };
    for (uint64_t pc = range.begin; pc < range.end;) {
      while (data != data_in_code.end() && data->end <= pc) ++data;
      const bool has_data = data != data_in_code.end() && data->begin < range.end;
      const uint64_t begin = has_data ? std::max(data->begin & ~(align - 1), pc) : range.end;
      const uint64_t end =
          has_data ? std::min((data->end + align - 1) & ~(align - 1), range.end) : range.end;
      add(pc, begin, false);
      add(begin, end, true);
      pc = end;
    }
  }
  return pieces;
}

ElfFile read_elf(std::span<const uint8_t> bytes, const std::string& name, Dynamic dynamic,
                 uint64_t base) {
  return Reader(bytes, name, dynamic, base).read();
}

void add_interpreter(ElfFile& program, std::span<const uint8_t> bytes, const std::string& name) {
  // As far apart as pages of any Linux need it: what the program's last page holds beyond its data
  // is not the interpreter's.
  constexpr uint64_t kApart = 0x10000;
  const Segment& last = program.segments.back();
  const uint64_t base = (last.address + last.size_bytes + 2 * kApart - 1) & ~(kApart - 1);
  ElfFile other = read_elf(bytes, name, Dynamic::kRefused, base);
  if (other.isa != program.isa)
    throw Error(name + ": a program for " + other.isa->name +
                ", and the one that it shall load is for " + program.isa->name +
                ". Give the folder of its system by --sysroot");
  if (other.segments.front().address < base)
    throw Error(name + ": the interpreter is not position-independent. Give another --sysroot");
  const auto append = [](auto& to, auto& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  append(program.segments, other.segments);
  append(program.symbols, other.symbols);
  std::ranges::stable_sort(program.symbols, {}, &Symbol::address);  // some have no place
  append(program.code, other.code);
  append(program.data_in_code, other.data_in_code);
  if (program.code.back().end - program.code.front().begin > kCodeLimit)
    throw Error(name + ": the code of the program and its interpreter spreads too far");
  program.program_entry = std::exchange(program.entry, other.entry);
  program.interpreter_base = base;
}

}  // namespace gpusim
