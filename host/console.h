// gpusim's own standard output and standard error, in one place: terminals hang up, disks fill, and
// descriptors may be closed. No function here throws because of that. What standard error does not
// take is lost; that standard output did not take everything is told by finish_output().
#pragma once
#include <fmt/format.h>

#include <ostream>
#include <streambuf>
#include <string_view>
#include <utility>

namespace gpusim::host::console {

// At the start of a program, before it opens a file: a descriptor that is closed is taken by one
// that cannot be used either. Else the next file would get its number, and messages would go into
// it.
void hold_standard_descriptors();

// At once, in one piece where the system allows.
void write_error(std::string_view text) noexcept;
// Gathered as C's stdout gathers.
void write_output(std::string_view text) noexcept;
// Writes what is gathered. 0, or the error number of the first write that failed.
int finish_output() noexcept;

template <typename... Args>
void err(fmt::format_string<Args...> text, Args&&... args) {
  write_error(fmt::format(text, std::forward<Args>(args)...));
}
template <typename... Args>
void out(fmt::format_string<Args...> text, Args&&... args) {
  write_output(fmt::format(text, std::forward<Args>(args)...));
}

// For what prints to a stream.
class OutputStream : private std::streambuf, public std::ostream {
 public:
  OutputStream() : std::ostream(static_cast<std::streambuf*>(this)) {}

 private:
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    write_output({text, static_cast<size_t>(size)});
    return size;
  }
  int overflow(int c) override {
    const char one = static_cast<char>(c);
    write_output({&one, 1});
    return c;
  }
};

}  // namespace gpusim::host::console
