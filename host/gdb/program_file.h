// The program's file, which a debugger may read through us (GDB manual, "File-I/O", vFile packets):
// then it need not be told which program runs.
#pragma once
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
  std::string path_;
  FileDescriptor file_;
};

}  // namespace gpusim::host::gdb
