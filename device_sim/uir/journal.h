// Journals: what cores did, in their order, for whoever wants to know (MachineConfig::journal_words).
// Words are written by `note`, if a program was translated so, and by `vector` (vector_note.h).
//
// A block begins with a word that has kBlockMark set and the block's number below; then follow the
// addresses of its accesses, one per note in the block's order. The note itself says what kind of
// access it stands for and how wide it is. A block that a fault ends has fewer words.
#pragma once
#include <cstdint>

#include "device_sim/uir/access.h"
#include "device_sim/uir/insn_class.h"
#include "device_sim/uir/uop.h"

namespace gpusim {

inline constexpr uint64_t kBlockMark = uint64_t{1} << 63;

enum class AccessKind : uint8_t { kLoad, kStore, kAtomic };

// aux of a note: an AddressMode, or kNoteBlock, and the kind of access above it. Its e: bytes.
inline constexpr uint8_t kNoteBlock = 3;
// aux of a note behind a fence, in programs that were translated so (TranslateOptions::stamps): its
// word is a stamp, greater than those of all fences of the slice that came before it.
inline constexpr uint8_t kNoteStamp = 1 << 2 | kNoteBlock;

// aux of a note behind a block's, in programs that were translated so (order_only of
// TranslateOptions): its word says what the core had executed before that block (ClockWord).
inline constexpr uint8_t kNoteClock = 2 << 2 | kNoteBlock;

// e of a note that stands for no access: the word is a register, the stack pointer.
inline constexpr uint8_t kNoBytes = 0;

struct NoteField {
  static constexpr uint8_t kMaxBytes = 0xff;
  static constexpr uint8_t pack(AccessKind kind, AddressMode mode) {
    return static_cast<uint8_t>(static_cast<uint8_t>(kind) << 2 | static_cast<uint8_t>(mode));
  }
  GPUSIM_HD static constexpr uint8_t mode(const Uop& u) { return u.aux & 3; }
  static constexpr AccessKind kind(const Uop& u) { return static_cast<AccessKind>(u.aux >> 2); }
  static constexpr uint8_t bytes(const Uop& u) { return u.e; }
};

GPUSIM_HD_INLINE uint64_t note_word(const Uop& u, uint64_t a, uint64_t b) {
  switch (NoteField::mode(u)) {
    case static_cast<uint8_t>(AddressMode::kImmediate):
      return access_address<AddressMode::kImmediate>(a, b, u.imm) & ~kBlockMark;
    case static_cast<uint8_t>(AddressMode::kIndex):
      return access_address<AddressMode::kIndex>(a, b, u.imm) & ~kBlockMark;
    case static_cast<uint8_t>(AddressMode::kIndex32):
      return access_address<AddressMode::kIndex32>(a, b, u.imm) & ~kBlockMark;
    default: return u.imm;
  }
}

// How long a core's instructions took so far, by their classes, and how many they are. Both begin
// again from zero beyond their bits: what matters is how much they grow from word to word.
struct ClockWord {
  static constexpr uint32_t kTickBits = 37, kCountBits = 23, kBits = kTickBits + kCountBits;
  static constexpr uint64_t kTicks = (uint64_t{1} << kTickBits) - 1;
  static constexpr uint64_t kCount = (uint64_t{1} << kCountBits) - 1;
  GPUSIM_HD static constexpr uint64_t pack(uint64_t ticks, uint64_t count) {
    return (ticks & kTicks) | (count & kCount) << kTickBits;
  }
  GPUSIM_HD static constexpr uint64_t ticks(uint64_t word) { return word & kTicks; }
  GPUSIM_HD static constexpr uint64_t count(uint64_t word) { return word >> kTickBits & kCount; }
};

// Of so many instructions of each class, which take so long. `ticks`: null: nobody wants to know.
template <class Counts>
GPUSIM_HD_INLINE uint64_t clock_word(const uint64_t* ticks, const Counts& executed) {
  if (ticks == nullptr) return 0;
  uint64_t time = 0, count = 0;
  for (int c = 0; c < kInsnClassCount; ++c) {
    time += ticks[c] * executed[c];
    count += executed[c];
  }
  return ClockWord::pack(time, count);
}

}  // namespace gpusim
