// From guest addresses to source lines, by the DWARF of the program's ELF file.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

struct Dwfl;

namespace gpusim::host {

// To be given to dwfl_end(). A file without DWARF, or that is no ELF file, has no modules.
Dwfl* open_debug_info(const std::string& path);
Dwfl* open_debug_info(int file);  // a descriptor, which stays open

class SourceLines {
 public:
  // A file without DWARF, or that is no ELF file, has no lines.
  explicit SourceLines(const std::string& path);
  ~SourceLines();
  SourceLines(const SourceLines&) = delete;
  SourceLines& operator=(const SourceLines&) = delete;

  // "sobel.c:42", or nothing if that is not known.
  std::string at(uint64_t pc) const;

 private:
  Dwfl* dwfl_ = nullptr;
};

}  // namespace gpusim::host
