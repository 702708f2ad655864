// What a micro-op `vector` that accesses memory writes to its core's journal (journal.h), in place
// of a note's word: one word for each run of neighbouring bytes, then kEnd. A fault leaves kEnd
// out.
#pragma once
#include "device_sim/uir/vector.h"

namespace gpusim {

struct VectorNote {
  static constexpr uint64_t kEnd = uint64_t{1} << 62;
  static constexpr int kBytesAt = 55;
  static constexpr uint32_t kMostBytes = vector::Group::kMaxRegisters * vector::kBytes;
  static_assert((uint64_t{kMostBytes} - 1) << kBytesAt < kEnd);

  GPUSIM_HD static constexpr uint64_t pack(uint64_t address, uint64_t bytes) {
    return (address & ((uint64_t{1} << kBytesAt) - 1)) | (bytes - 1) << kBytesAt;
  }
  static constexpr uint64_t address(uint64_t word) {
    return word & ((uint64_t{1} << kBytesAt) - 1);
  }
  static constexpr uint16_t bytes(uint64_t word) {
    return static_cast<uint16_t>((word >> kBytesAt) + 1);
  }

  static constexpr uint32_t kWordsOfRun = 2;
  // How many words an instruction writes at most.
  static constexpr uint32_t most_words(const vector::Insn& u) {
    const vector::Kind kind = vector::row_of(u.op).kind;
    if (!vector::is_access(kind)) return 0;
    const bool is_run =
        !u.masked && kind != vector::Kind::kStrided && kind != vector::Kind::kIndexed;
    return is_run ? kWordsOfRun : 1 + kMostBytes;
  }
};

}  // namespace gpusim
