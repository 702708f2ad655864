// The program's file, which a debugger may read through us (GDB manual, "File-I/O", vFile packets):
// then it need not be told which program runs.
#pragma once
#include <map>
#include <string>

#include "device_sim/base/file_descriptor.h"
#include "host/gdb/packet.h"

namespace gpusim::host::gdb {

class ProgramFile {
 public:
  explicit ProgramFile(const std::string& path);
  // Absolute; empty if it is not an ELF file.
  const std::string& path() const { return path_; }
  // The answer to "vFile:" + words.
  std::string answer(Words words);

 private:
  std::string open(Words words);
  std::string path_;
  // GDB opens the file several times and closes some of these: each has a number of its own.
  std::map<uint64_t, FileDescriptor> open_;
};

}  // namespace gpusim::host::gdb
