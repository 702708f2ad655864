#include "tests/isa/a64/disassemblers.h"

#include <capstone/capstone.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <stdexcept>

namespace gpusim::a64 {
namespace {

class TemporaryFile {
 public:
  explicit TemporaryFile(std::span<const uint32_t> words) {
    const int fd = mkstemp(path_.data());
    if (fd < 0) throw std::runtime_error("cannot create a file in /tmp");
    const std::unique_ptr<FILE, int (*)(FILE*)> file(fdopen(fd, "wb"), fclose);
    if (!file || fwrite(words.data(), sizeof(uint32_t), words.size(), file.get()) != words.size()) {
      throw std::runtime_error("cannot write " + path_);
    }
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { unlink(path_.c_str()); }

  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/gpusim-a64-words-XXXXXX";
};

/// "   4:\t91001062 \tadd\tx2, x3, #0x4  // comment" after its address; false for headings.
bool parse_line(std::string line, Disassembly& out) {
  while (!line.empty() && line.back() == '\n') line.pop_back();
  const size_t word = line.find(":\t");
  if (word == std::string::npos) return false;
  const size_t text = line.find('\t', word + 2);
  if (text == std::string::npos) return false;
  line.erase(0, text + 1);
  if (const size_t comment = line.find(" //"); comment != std::string::npos) line.resize(comment);
  const size_t end = line.find_first_of(" \t");
  out.mnemonic = line.substr(0, end);
  out.operands = end == std::string::npos ? "" : line.substr(end + 1);
  if (out.mnemonic == ".inst") out = {};
  return true;
}

}  // namespace

std::vector<Disassembly> objdump(std::span<const uint32_t> words, bool aliases) {
  const TemporaryFile file(words);
  const std::string command = std::string(GPUSIM_AARCH64_OBJDUMP " -D -z -b binary -m aarch64 ") +
                              (aliases ? "" : "-M no-aliases ") + file.path();
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  if (!pipe) throw std::runtime_error("cannot run " + command);
  std::vector<Disassembly> result;
  result.reserve(words.size());
  char line[1024];
  while (fgets(line, sizeof line, pipe.get()) != nullptr) {
    Disassembly d;
    if (parse_line(line, d)) result.push_back(std::move(d));
  }
  if (result.size() != words.size()) {
    throw std::runtime_error("unexpected output of " + command);
  }
  return result;
}

std::vector<Disassembly> capstone(std::span<const uint32_t> words) {
  csh handle = 0;
  if (cs_open(CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN, &handle) != CS_ERR_OK) {
    throw std::runtime_error("Capstone has no AArch64 support");
  }
  cs_insn* const insn = cs_malloc(handle);
  std::vector<Disassembly> result(words.size());
  for (size_t i = 0; i < words.size(); ++i) {
    const auto* code = reinterpret_cast<const uint8_t*>(&words[i]);
    size_t size = sizeof(uint32_t);
    uint64_t address = 0;
    if (cs_disasm_iter(handle, &code, &size, &address, insn)) {
      result[i] = {insn->mnemonic, insn->op_str};
    }
  }
  cs_free(insn, 1);
  cs_close(&handle);
  return result;
}

}  // namespace gpusim::a64
