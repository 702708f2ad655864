#include "tests/isa/riscv/objdump.h"

#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>

namespace gpusim::riscv {
namespace {

// A folder that goes away.
class Folder {
 public:
  Folder() {
    if (mkdtemp(path_.data()) == nullptr)
      throw std::runtime_error("cannot create a folder in /tmp");
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string operator/(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_ = "/tmp/gpusim-riscv-words-XXXXXX";
};

/// "   4:\t4501  \tli\ta0,0 # comment"; false for headings.
bool parse_line(std::string line, int xlen, std::string& text) {
  while (!line.empty() && line.back() == '\n') line.pop_back();
  const size_t word = line.find(":\t");
  if (word == std::string::npos) return false;
  const uint64_t address = std::stoull(line, nullptr, 16);
  const size_t tab = line.find('\t', word + 2);
  if (tab == std::string::npos) return false;
  text = line.substr(tab + 1);
  if (const size_t comment = text.find(" #"); comment != std::string::npos) text.resize(comment);
  if (const size_t symbol = text.find(" <"); symbol != std::string::npos) text.resize(symbol);
  if (text.starts_with('.')) text.clear();  // .2byte
  for (char& c : text)
    if (c == '\t') c = ' ';
  while (text.ends_with(' ')) text.pop_back();
  const std::string name = text.substr(0, text.find(' '));
  const bool is_compressed = name.starts_with("c.");
  const std::string plain = is_compressed ? name.substr(2) : name;
  const bool has_target =
      (plain[0] == 'b' &&
       (plain == "blt" || plain == "bltu" || plain == "blez" || plain == "bltz" ||
        plain.starts_with("bne") || plain.starts_with("beq") || plain.starts_with("bg"))) ||
      plain == "j" || plain == "jal";
  if (has_target) {
    const size_t at = text.find_last_of(" ,") + 1;
    const auto target = static_cast<int64_t>(std::stoull(text.substr(at), nullptr, 16));
    int64_t offset = target - static_cast<int64_t>(address);
    if (xlen == 32) offset = static_cast<int32_t>(offset);
    text = text.substr(0, at) + (offset < 0 ? ".-" : ".+") + std::to_string(std::abs(offset));
  }
  return true;
}

}  // namespace

// As a raw binary, objdump would take the code for plain RV64GC: it comes from an object file that
// names the extensions.
std::vector<std::string> objdump(std::span<const Encoding> code, bool aliases, int xlen) {
  const Folder folder;
  {
    std::ofstream file(folder / "code", std::ios::binary);
    for (const Encoding& e : code) file.write(reinterpret_cast<const char*>(&e.word), e.bytes);
    std::ofstream(folder / "code.s") << ".incbin \"" << folder / "code"
                                     << "\"\n";
    if (!file.flush()) throw std::runtime_error("cannot write to " + folder / "code");
  }
  const std::string assemble =
      GPUSIM_RISCV64_GCC " -march=rv" + std::to_string(xlen) + (xlen == 64 ? "gcv" : "gc") +
      "_zba_zbb_zbc_zbs_zfh_zawrs_zihintpause -mabi=" + (xlen == 32 ? "ilp32d" : "lp64d") + " -c " +
      folder / "code.s" + " -o " + folder / "code.o";
  if (std::system(assemble.c_str()) != 0) throw std::runtime_error("failed: " + assemble);
  const std::string command = std::string(GPUSIM_RISCV64_OBJDUMP " -D -z -j .text ") +
                              (aliases ? "" : "-M no-aliases ") + folder / "code.o";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  if (!pipe) throw std::runtime_error("cannot run " + command);
  std::vector<std::string> result;
  result.reserve(code.size());
  char line[1024];
  while (fgets(line, sizeof line, pipe.get()) != nullptr) {
    std::string text;
    if (parse_line(line, xlen, text)) result.push_back(std::move(text));
  }
  if (result.size() != code.size()) throw std::runtime_error("unexpected output of " + command);
  return result;
}

}  // namespace gpusim::riscv
