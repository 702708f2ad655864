#include "translator/elf/shared_object.h"

#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>

#include "device_sim/base/file_descriptor.h"
#include "translator/common/limits.h"

namespace gpusim {
namespace {

constexpr uint64_t kPage = 4096;

using ElfHandle = std::unique_ptr<Elf, decltype(&elf_end)>;

uint64_t page_below(uint64_t address) { return address & ~(kPage - 1); }

// Where the object's addresses begin to count, and what they cover.
bool find_place(Elf* elf, uint64_t address, uint64_t offset, SharedObject& object) {
  size_t count = 0;
  if (elf_getphdrnum(elf, &count) != 0) return false;
  bool is_found = false;
  uint64_t first = kAddressLimit, last = 0;
  for (size_t i = 0; i < count && i < 1024; ++i) {
    GElf_Phdr p;
    if (!gelf_getphdr(elf, static_cast<int>(i), &p) || p.p_type != PT_LOAD) continue;
    if (p.p_vaddr >= kAddressLimit || p.p_memsz >= kAddressLimit) return false;
    first = std::min(first, page_below(p.p_vaddr));
    last = std::max(last, page_below(p.p_vaddr + p.p_memsz + kPage - 1));
    if ((p.p_flags & PF_X) && page_below(p.p_offset) == offset) {
      object.bias = address - page_below(p.p_vaddr);
      is_found = true;
    }
  }
  if (!is_found || object.bias >= kAddressLimit) return false;
  object.begin = object.bias + first;
  object.end = object.bias + last;
  return true;
}

void read_symbols(Elf* elf, Elf_Scn* section, const SharedObject& object,
                  std::vector<Symbol>& symbols) {
  GElf_Shdr header;
  Elf_Data* const data = elf_getdata(section, nullptr);
  if (!data || !data->d_buf || !gelf_getshdr(section, &header)) return;
  GElf_Sym s;
  for (int i = 0; gelf_getsym(data, i, &s); ++i) {
    const int type = GELF_ST_TYPE(s.st_info);
    const bool is_function = type == STT_FUNC || type == STT_GNU_IFUNC;
    if ((!is_function && type != STT_OBJECT) || s.st_shndx == SHN_UNDEF || s.st_shndx == SHN_ABS)
      continue;
    const char* const name = elf_strptr(elf, header.sh_link, s.st_name);
    const uint64_t address = object.bias + s.st_value;
    if (!name || !*name || address < object.begin || address >= object.end) continue;
    symbols.push_back({address, std::min(s.st_size, object.end - address), name, is_function});
  }
}

// All symbols if the file has them, else those for the dynamic linker.
std::vector<Symbol> symbols_of(Elf* elf, const SharedObject& object) {
  std::vector<Symbol> symbols;
  for (const unsigned type : {SHT_SYMTAB, SHT_DYNSYM}) {
    for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
      GElf_Shdr header;
      if (gelf_getshdr(section, &header) && header.sh_type == type)
        read_symbols(elf, section, object, symbols);
    }
    if (!symbols.empty()) break;
  }
  // Of several names for one address the shortest one is what messages show.
  std::stable_sort(symbols.begin(), symbols.end(), [](const Symbol& a, const Symbol& b) {
    const auto key = [](const Symbol& s) {
      return std::tuple(s.address, !s.is_function, s.name.size());
    };
    return key(a) < key(b);
  });
  return symbols;
}

}  // namespace

std::optional<MappedObject> read_shared_object(int file, const std::string& path, uint64_t address,
                                               uint64_t offset) {
  elf_version(EV_CURRENT);
  const ElfHandle elf(elf_begin(file, ELF_C_READ, nullptr), &elf_end);
  GElf_Ehdr header;
  if (!elf || elf_kind(elf.get()) != ELF_K_ELF || !gelf_getehdr(elf.get(), &header) ||
      header.e_type != ET_DYN)
    return std::nullopt;
  MappedObject mapped{.object = {.begin = 0, .end = 0, .bias = 0, .path = path}, .symbols = {}};
  if (!find_place(elf.get(), address, offset, mapped.object)) return std::nullopt;
  mapped.symbols = symbols_of(elf.get(), mapped.object);
  return mapped;
}

bool names_interpreter(const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  elf_version(EV_CURRENT);
  const ElfHandle elf(file ? elf_begin(file.get(), ELF_C_READ, nullptr) : nullptr, &elf_end);
  size_t count = 0;
  if (!elf || elf_kind(elf.get()) != ELF_K_ELF || elf_getphdrnum(elf.get(), &count) != 0)
    return false;
  GElf_Phdr p;
  for (size_t i = 0; i < count; ++i)
    if (gelf_getphdr(elf.get(), static_cast<int>(i), &p) && p.p_type == PT_INTERP) return true;
  return false;
}

}  // namespace gpusim
