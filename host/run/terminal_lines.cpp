#include "host/run/terminal_lines.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

namespace gpusim::host {

size_t error_columns() {
  constexpr size_t kUsual = 80, kLeast = 20;
  if (isatty(STDERR_FILENO) == 0) return 0;
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < kLeast) return kUsual;
  return size.ws_col;
}

std::string wrapped(const std::string& text, size_t columns) {
  if (columns == 0) return text;
  std::string out;
  size_t used = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const size_t width = end - at;
    if (used != 0 && used + 1 + width > columns) {
      out += "\n  ";
      used = 2;
    } else if (used != 0) {
      out += ' ';
      ++used;
    }
    out.append(text, at, width);
    used += width;
    at = end + 1;
  }
  return out;
}

}  // namespace gpusim::host
