// Runs an oracle's guest program under an emulator.
#pragma once

#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

namespace gpusim::oracle {

/// A temporary file. All throw std::runtime_error.
struct File {
  File();
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

/// Runs the command with `in`, from its start, and `out` as standard input and output; `out` is at
/// its start afterwards.
void run_guest(const std::vector<std::string>& command, File& in, File& out);

}  // namespace gpusim::oracle
