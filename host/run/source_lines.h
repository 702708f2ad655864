// From guest addresses to source lines, by the DWARF of the program and of its shared objects.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "device_sim/uir/module.h"

struct Dwfl;

namespace gpusim::host {

// A file without DWARF, or that is no ELF file, has none; nor has one that is no longer there.
class DebugInfo {
 public:
  // `module`: may be null; else its shared objects count, and it has to live as long.
  explicit DebugInfo(std::string path, const Module* module = nullptr)
      : path_(std::move(path)), module_(module) {}
  explicit DebugInfo(int file) : file_(file) {}  // a descriptor of the program, which stays open
  ~DebugInfo();
  DebugInfo(const DebugInfo&) = delete;
  DebugInfo& operator=(const DebugInfo&) = delete;

  // Null if there is no memory. Valid until it is called again: there may be other objects then.
  Dwfl* get();

 private:
  std::string path_;
  int file_ = -1;
  const Module* module_ = nullptr;
  Dwfl* dwfl_ = nullptr;
  std::vector<SharedObject> objects_;  // in it
};

class SourceLines {
 public:
  // As for DebugInfo.
  explicit SourceLines(const std::string& path, const Module* module = nullptr)
      : info_(path, module) {}

  // "sobel.c:42", or nothing if that is not known.
  std::string at(uint64_t pc) const;

 private:
  mutable DebugInfo info_;
};

}  // namespace gpusim::host
