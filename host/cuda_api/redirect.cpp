#include "host/cuda_api/redirect.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

namespace gpusim::cuda_api {
namespace {

constexpr const char* kRegister = "__cudaRegisterFatBinary";
// mov rax, address; jmp rax
constexpr size_t kJumpBytes = 12;

class File {
 public:
  explicit File(const char* path) {
    const int descriptor = ::open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return;
    struct stat status {};
    if (::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
      void* const mapped = ::mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ,
                                  MAP_PRIVATE, descriptor, 0);
      if (mapped != MAP_FAILED)
        bytes_ = {static_cast<std::byte*>(mapped), static_cast<size_t>(status.st_size)};
    }
    ::close(descriptor);
  }
  ~File() {
    if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

template <typename T>
std::optional<T> read(std::span<const std::byte> bytes, size_t offset) {
  if (offset > bytes.size() || sizeof(T) > bytes.size() - offset) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// The text that begins at `offset`, up to its zero.
std::string_view text_at(std::span<const std::byte> strings, size_t offset) {
  if (offset >= strings.size()) return {};
  const auto* begin = reinterpret_cast<const char*>(strings.data()) + offset;
  return {begin, ::strnlen(begin, strings.size() - offset)};
}

class Elf {
 public:
  explicit Elf(std::span<const std::byte> file) : file_(file) {
    const auto header = read<Elf64_Ehdr>(file, 0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_shentsize != sizeof(Elf64_Shdr))
      return;
    for (size_t i = 0; i < header->e_shnum; ++i)
      if (const auto section = read<Elf64_Shdr>(file, header->e_shoff + i * sizeof(Elf64_Shdr)))
        sections_.push_back(*section);
    if (header->e_shstrndx < sections_.size()) names_ = contents(sections_[header->e_shstrndx]);
  }
  const std::vector<Elf64_Shdr>& sections() const { return sections_; }
  std::string_view name(const Elf64_Shdr& section) const {
    return text_at(names_, section.sh_name);
  }
  std::span<const std::byte> contents(const Elf64_Shdr& section) const {
    if (section.sh_type == SHT_NOBITS || section.sh_offset > file_.size()) return {};
    return file_.subspan(section.sh_offset,
                         std::min<size_t>(section.sh_size, file_.size() - section.sh_offset));
  }
  template <typename F>
  void for_each_symbol(unsigned type, F&& f) const {
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type != type || section.sh_link >= sections_.size()) continue;
      const auto symbols = contents(section), strings = contents(sections_[section.sh_link]);
      for (size_t at = 0; at + sizeof(Elf64_Sym) <= symbols.size(); at += sizeof(Elf64_Sym)) {
        const auto symbol = read<Elf64_Sym>(symbols, at);
        f(*symbol, text_at(strings, symbol->st_name));
      }
    }
  }

 private:
  std::span<const std::byte> file_, names_;
  std::vector<Elf64_Shdr> sections_;
};

struct Object {
  std::string path;
  uintptr_t base;
};

[[noreturn]] void give_up(const std::string& text) {
  std::fprintf(stderr, "gpusim cuda: %s\n", text.c_str());
  ::_exit(2);
}

// The program's own name behind /proc/self/exe.
std::string real_path(const std::string& path) {
  char name[4096];
  const ssize_t size = ::readlink(path.c_str(), name, sizeof name);
  return size > 0 ? std::string(name, static_cast<size_t>(size)) : path;
}

void write_jump(uintptr_t at, const void* target) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t begin = at / page * page, end = (at + kJumpBytes + page - 1) / page * page;
  auto* const pages = reinterpret_cast<void*>(begin);
  if (::mprotect(pages, end - begin, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
    give_up("the system forbids to change the program's code: build it with -cudart shared");
  unsigned char jump[kJumpBytes] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0};
  std::memcpy(jump + 2, &target, sizeof target);
  std::memcpy(reinterpret_cast<void*>(at), jump, sizeof jump);
  ::mprotect(pages, end - begin, PROT_READ | PROT_EXEC);
}

// Jumps to ours only where what they call in its place is there, too.
void redirect_nvrtc(const Object& object, const RuntimeInside& inside, void* own,
                    NvrtcInside& found) {
  const auto address = [&](std::string_view name) -> uintptr_t {
    for (const NamedFunction& f : inside.nvrtc)
      if (f.name == name && f.size_bytes >= kJumpBytes) return object.base + f.value;
    return 0;
  };
  const NvrtcInside here{address("nvrtcGetPTXSize"), address("nvrtcGetPTX")};
  if (here.get_ptx_size == 0 || here.get_ptx == 0) return;
  for (const char* name : {"nvrtcGetCUBINSize", "nvrtcGetCUBIN"})
    if (address(name) != 0) write_jump(address(name), ::dlsym(own, name));
  found = here;
}

// Libraries that come with CUDA or beside it.
bool is_of_nvidia(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  for (const std::string_view start :
       {"libcublas", "libcudnn", "libcufft", "libcurand", "libcusolver", "libcusparse",
        "libcutensor", "libnccl", "libnpp", "libnvjpeg", "libnvinfer"})
    if (name.starts_with(start)) return true;
  return false;
}

void redirect(const Object& object, void* own, NvrtcInside& nvrtc) {
  const File file(object.path.c_str());
  const RuntimeInside inside = find_runtime(file.bytes());
  redirect_nvrtc(object, inside, own, nvrtc);
  for (const NamedFunction& f : inside.functions)
    if (void* const ours = ::dlsym(own, f.name.c_str());
        ours != nullptr && f.size_bytes >= kJumpBytes)
      write_jump(object.base + f.value, ours);
  if (!inside.has_kernels || !inside.functions.empty() || inside.imports_runtime) return;
  const std::string path = real_path(object.path);
  if (is_of_nvidia(path))
    give_up(path +
            " is a library of NVIDIA's, whose kernels are machine code only: programs that call it "
            "do not run here. Thrust, CUB and curand_kernel.h are headers, and work");
  give_up(path +
          " has CUDA's runtime inside and no symbol table (it is stripped), so its functions "
          "cannot be found: build it with nvcc -cudart shared, or do not strip it");
}

}  // namespace

RuntimeInside find_runtime(std::span<const std::byte> file) {
  RuntimeInside found;
  const Elf elf(file);
  for (const Elf64_Shdr& section : elf.sections())
    if (elf.name(section) == ".nv_fatbin") found.has_kernels = true;
  // In libraries these functions have versions, and are found without.
  const auto is_exported = [&](std::string_view name) {
    bool is = false;
    elf.for_each_symbol(SHT_DYNSYM, [&](const Elf64_Sym& symbol, std::string_view other) {
      is = is || (other == name && symbol.st_shndx != SHN_UNDEF);
    });
    return is;
  };
  elf.for_each_symbol(SHT_SYMTAB, [&](const Elf64_Sym& symbol, std::string_view name) {
    if (!name.starts_with("nvrtcGet") || symbol.st_shndx == SHN_UNDEF) return;
    if (name == "nvrtcGetPTX" || name == "nvrtcGetPTXSize" || name == "nvrtcGetCUBIN" ||
        name == "nvrtcGetCUBINSize")
      found.nvrtc.push_back({std::string(name), symbol.st_value, symbol.st_size});
  });
  if (!found.nvrtc.empty() && is_exported("nvrtcGetPTX")) found.nvrtc.clear();
  elf.for_each_symbol(SHT_DYNSYM, [&](const Elf64_Sym& symbol, std::string_view name) {
    // Programs of the driver API whose kernels are elsewhere import only what ends the runtime.
    if (name.starts_with("__cuda") && symbol.st_shndx == SHN_UNDEF) found.imports_runtime = true;
  });
  bool carries = false;
  elf.for_each_symbol(SHT_SYMTAB, [&](const Elf64_Sym& symbol, std::string_view name) {
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF) return;
    if (!name.starts_with("cuda") && !name.starts_with("__cuda")) return;
    carries = carries || name == kRegister;
    found.functions.push_back({std::string(name), symbol.st_value, symbol.st_size});
  });
  if (!carries) found.functions.clear();
  return found;
}

NvrtcInside redirect_static_runtimes() {
  NvrtcInside nvrtc;
  Dl_info self{};
  if (::dladdr(reinterpret_cast<void*>(&redirect_static_runtimes), &self) == 0) return nvrtc;
  void* const own = ::dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (own == nullptr) return nvrtc;
  std::vector<Object> objects;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* list) {
        auto& all = *static_cast<std::vector<Object>*>(list);
        // The program itself comes first, without a name.
        if (all.empty())
          all.push_back({"/proc/self/exe", info->dlpi_addr});
        else if (info->dlpi_name[0] == '/')
          all.push_back({info->dlpi_name, info->dlpi_addr});
        return 0;
      },
      &objects);
  for (const Object& object : objects)
    if (object.path != self.dli_fname) redirect(object, own, nvrtc);
  return nvrtc;
}

}  // namespace gpusim::cuda_api
