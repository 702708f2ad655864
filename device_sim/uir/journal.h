// Journals: what cores did, in their order, for whoever wants to know (MachineConfig::journal_words).
// Words are written by `note`, if a program was translated so, and by `vector` (vector_note.h).
//
// A block begins with a word that has kBlockMark set and the block's number below; then follow the
// addresses of its accesses, one per note in the block's order. The note itself says what kind of
// access it stands for and how wide it is. A block that a fault ends has fewer words.
#pragma once
#include <cstdint>

#include "device_sim/uir/access.h"
#include "device_sim/uir/uop.h"

namespace gpusim {

inline constexpr uint64_t kBlockMark = uint64_t{1} << 63;

enum class AccessKind : uint8_t { kLoad, kStore, kAtomic };

// aux of a note: an AddressMode, or kNoteBlock, and the kind of access above it. Its e: bytes.
inline constexpr uint8_t kNoteBlock = 3;
// aux of a note behind a fence, in programs that were translated so (TranslateOptions::stamps): its
// word is a stamp, greater than those of all fences of the slice that came before it.
inline constexpr uint8_t kNoteStamp = 1 << 2 | kNoteBlock;

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

}  // namespace gpusim
