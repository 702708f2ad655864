// Files that the user asked for: written whole or not at all.
#pragma once
#include <string>
#include <string_view>

#include "device_sim/base/file_descriptor.h"

namespace gpusim::host {

// Where a file goes. That is found out once, symbolic links followed: a guest that may write there
// cannot turn a file that is written after the run elsewhere.
//
// A plain file is written beside its place, then renamed. What is no plain file (/dev/full, a named
// pipe) is written into; so is what a descriptor of this process stands for (/dev/stdout).
class OutputFile {
 public:
  // `option` is named in messages: "--stats". Throws Error if writing could not work later.
  OutputFile(std::string option, std::string path);

  // Throws Error. May be called again: each time the file is replaced.
  void write(std::string_view text) const;
  // Adds to what a plain file has, in one piece, so that runs may share it.
  void append(std::string_view text) const;

  const std::string& path() const { return path_; }
  // Its folder (O_PATH) and its name there, to write a plain file in pieces.
  int folder() const { return folder_.get(); }
  const std::string& name() const { return name_; }
  bool is_plain() const { return kind_ == Kind::kPlain; }

 private:
  enum class Kind { kPlain, kInPlace, kDescriptor };
  void find_place();
  void write_in_place(std::string_view text) const;
  void replace(std::string_view text) const;
  void write_all(int fd, std::string_view text) const;
  [[noreturn]] void fail(int error) const;

  std::string option_, path_;
  Kind kind_ = Kind::kPlain;
  FileDescriptor folder_;
  std::string name_;
};

inline void write_output_file(const std::string& option, const std::string& path,
                              std::string_view text) {
  OutputFile(option, path).write(text);
}
// Throws Error now if that could not work later, after a long run.
inline void check_output_file(const std::string& option, const std::string& path) {
  OutputFile(option, path);
}

}  // namespace gpusim::host
