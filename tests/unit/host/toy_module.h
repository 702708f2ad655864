// A module without code: an image and the slots that the host looks for.
#pragma once
#include "device_sim/uir/module.h"

namespace gpusim::host {

inline constexpr uint64_t kToyText = 0x400000, kToyData = 0x410000;

inline Module toy_module() {
  Module m;
  m.isa = "aarch64";
  m.entry = kToyText + 0x100;
  m.slot_count = 16;
  for (int i = 0; i < 6; ++i) m.abi.syscall_args[i] = i;
  m.abi.syscall_result = 0;
  m.abi.syscall_number = 8;
  m.abi.stack_pointer = 9;
  m.abi.core_id = 10;
  m.segments.push_back({.address = kToyText,
                        .size_bytes = 0x2000,
                        .flags = kRead | kExecute,
                        .bytes = std::vector<uint8_t>(0x1800, 0xaa)});
  m.segments.push_back({.address = kToyData + 0x10,
                        .size_bytes = 0x3000,
                        .flags = kRead | kWrite,
                        .bytes = {1, 2, 3, 4}});
  m.symbols.push_back(
      {.address = kToyText + 0x100, .size_bytes = 0x40, .name = "main", .is_function = true});
  m.phdr_address = kToyText + 0x40;
  m.phdr_count = 2;
  m.phdr_entry_size = 56;
  return m;
}

}  // namespace gpusim::host
