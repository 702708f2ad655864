#include "host/linux/own_files.h"

namespace gpusim::host {

OwnFile own_file_in_proc(const std::string& path) {
  return path == "/proc/self/exe" ? OwnFile::kProgram : OwnFile::kNone;
}

}  // namespace gpusim::host
