// The device's printf: a format, and arguments as vprintf finds them in memory.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace gpusim::ptx {

struct PrintfMemory {
  /// `size` bytes, 4 or 8, at an offset from the arguments.
  std::function<uint64_t(uint64_t offset, uint32_t size)> argument;
  std::function<std::string(uint64_t address)> string;
};

/// Each argument lies at a multiple of its size: 8 bytes for doubles, pointers and 64-bit integers,
/// 4 for others. Conversions that it does not know are printed as they are.
std::string format_printf(const std::string& format, const PrintfMemory& memory);

}  // namespace gpusim::ptx
