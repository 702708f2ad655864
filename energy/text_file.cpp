#include "energy/text_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "energy/error.h"

namespace gpusim::energy {

std::string read_text_file(const std::string& path) {
  const auto fail = [&](int error) { throw Error(path + ": " + std::strerror(error)); };
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(errno != 0 ? errno : EIO);
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) fail(EISDIR);
  std::ostringstream text;
  text << in.rdbuf();
  if (in.bad()) fail(EIO);
  return text.str();
}

}  // namespace gpusim::energy
