// Modules made by hand, block by block.
#pragma once
#include <initializer_list>

#include "device_sim/uir/module.h"

namespace gpusim {

// Appends a block of these micro-ops, each an instruction of class 0; the last one ends it and goes
// to `target`.
inline void add_block(Module& m, std::initializer_list<Uop> uops, uint32_t target = 0) {
  Block b;
  b.first_uop = static_cast<uint32_t>(m.uops.size());
  b.insn_count = b.uop_count = static_cast<uint32_t>(uops.size());
  b.classes[0] = static_cast<uint16_t>(uops.size());
  m.uops.insert(m.uops.end(), uops);
  m.uops.back().imm = Uop::pack_target(static_cast<uint32_t>(m.blocks.size()), target);
  m.blocks.push_back(b);
}

// All blocks are there.
inline void finish(Module& m, uint32_t slots) {
  m.slot_count = slots;
  m.uop_block.assign(m.uops.size(), 0);
  m.uop_insn.assign(m.uops.size(), 0);
}

}  // namespace gpusim
