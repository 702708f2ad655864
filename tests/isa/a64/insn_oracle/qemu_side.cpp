#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "tests/isa/a64/insn_oracle/oracle.h"

namespace gpusim::a64::oracle {
namespace {

struct File {
  explicit File(std::FILE* f) : file(f) {
    if (!file) throw std::runtime_error(std::string("oracle: temporary file: ") + strerror(errno));
  }
  ~File() { std::fclose(file); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  template <class T>
  void write(const T* data, size_t count) {
    if (std::fwrite(data, sizeof(T), count, file) != count)
      throw std::runtime_error("oracle: can't write a temporary file: is the disk full?");
  }
  template <class T>
  void read(T* data, size_t count) {
    if (std::fread(data, sizeof(T), count, file) != count)
      throw std::runtime_error("oracle: the guest's results are incomplete");
  }
  std::FILE* file;
};

void run_guest(std::FILE* in, std::FILE* out, const std::string& cpu) {
  const char* emulator = std::getenv("GPUSIM_QEMU_AARCH64");
  if (!emulator) emulator = "qemu-aarch64";
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("oracle: fork failed");
  if (child == 0) {
    dup2(fileno(in), STDIN_FILENO);
    dup2(fileno(out), STDOUT_FILENO);
    execlp(emulator, emulator, "-cpu", cpu.c_str(), GPUSIM_ORACLE_GUEST, nullptr);
    std::perror(emulator);
    _exit(127);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw std::runtime_error("oracle: the guest program failed under " + std::string(emulator));
}

}  // namespace

std::vector<Result> run_qemu(std::span<const Case> cases, const std::string& cpu) {
  if (cases.size() > ORACLE_MAX_CASES) throw std::invalid_argument("oracle: too many cases");
  File in(std::tmpfile()), out(std::tmpfile());
  const oracle_header header{ORACLE_MAGIC, cases.size()};
  in.write(&header, 1);
  for (const Case& c : cases) {
    oracle_case record{};
    if (c.words.size() > ORACLE_MAX_WORDS) throw std::invalid_argument("oracle: too many words");
    std::copy(c.words.begin(), c.words.end(), record.words);
    record.word_count = static_cast<uint32_t>(c.words.size());
    record.uses_memory = c.uses_memory;
    record.code_offset = static_cast<uint32_t>(c.pc - ORACLE_CODE);
    record.state = c.state;
    in.write(&record, 1);
  }
  std::rewind(in.file);
  run_guest(in.file, out.file, cpu);

  std::rewind(out.file);
  std::vector<Result> results(cases.size());
  for (Result& r : results) {
    oracle_result record;
    out.read(&record, 1);
    r.signal = static_cast<int>(record.signal);
    r.exit = record.exit;
    if (r.signal != 0) r.pc = record.pc;
    r.state = record.state;
    r.changes.resize(record.change_count);
    out.read(r.changes.data(), r.changes.size());
  }
  return results;
}

}  // namespace gpusim::a64::oracle
