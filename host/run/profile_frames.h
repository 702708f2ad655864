// From guest addresses to functions that were inlined there, by the DWARF of the program's ELF file.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

struct Dwfl;

namespace gpusim::host {

// A function, and the line of it that an instruction belongs to.
struct Frame {
  std::string function;  // "" where that is not known
  std::string file;      // with its folder; "" where that is not known
  int line = 0;
  bool operator==(const Frame&) const = default;
};

class InlineFrames {
 public:
  // A file without DWARF, or that is no ELF file, has no frames.
  explicit InlineFrames(const std::string& path);
  explicit InlineFrames(int file);  // a descriptor, which stays open
  ~InlineFrames();
  InlineFrames(const InlineFrames&) = delete;
  InlineFrames& operator=(const InlineFrames&) = delete;

  // The innermost inlined function first, the function that was compiled last; empty where DWARF does
  // not know the address. Callers are those in the source text, not those at run time.
  std::vector<Frame> at(uint64_t pc) const;

 private:
  Dwfl* dwfl_ = nullptr;
};

}  // namespace gpusim::host
