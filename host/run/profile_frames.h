// From guest addresses to functions that were inlined there, by the DWARF of the program's ELF file.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "host/run/source_lines.h"

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
  // As for DebugInfo.
  explicit InlineFrames(const std::string& path, const Module* module = nullptr)
      : info_(path, module) {}
  explicit InlineFrames(int file) : info_(file) {}

  // The innermost inlined function first, the function that was compiled last; empty where DWARF does
  // not know the address. Callers are those in the source text, not those at run time.
  std::vector<Frame> at(uint64_t pc) const;

 private:
  mutable DebugInfo info_;
};

}  // namespace gpusim::host
