// What the daemon did, line by line, for those who ask for it by --verbose or --log.
#pragma once
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

namespace gpusim::daemon {

class Log {
 public:
  Log() = default;  // says nothing
  static Log to_standard_error();
  static Log to_file(const std::string& path);  // appends; gpusim::Error

  /// Ask first where the arguments cost something.
  explicit operator bool() const { return file_ != nullptr; }

  template <typename... Args>
  void line(fmt::format_string<Args...> text, Args&&... args) {
    if (file_) write(fmt::format(text, std::forward<Args>(args)...));
  }

 private:
  void write(const std::string& text);

  std::shared_ptr<std::FILE> file_;
};

/// "gpusim daemon: ..." on standard error, one line.
void complain(const std::string& text);

}  // namespace gpusim::daemon
