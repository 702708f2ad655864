#include "host/gdb/registers.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "translator/passes/renumber_slots.h"

namespace gpusim::host::gdb {

RegisterFile::RegisterFile(const GuestIsa& isa, const Module& module, Backend& backend,
                           SlotOf slot_of)
    : target_(isa.debug_target()),
      backend_(backend),
      slot_of_(std::move(slot_of)),
      slots_(recover_slot_map(isa, module)) {
  for (const DebugFeature& feature : target_.features)
    for (const DebugRegister& r : feature.registers) registers_.push_back(&r);
}

std::vector<uint8_t> RegisterFile::read(uint32_t core, size_t number, uint64_t pc) const {
  const DebugRegister& r = *registers_[number];
  std::vector<uint8_t> bytes(r.bits / 8);
  const auto put = [&](uint64_t value, uint32_t bits, uint32_t at) {
    for (uint32_t bit = 0; bit < bits;) {
      const uint32_t to = at + bit, rest = std::min(bits - bit, 8 - to % 8);
      const auto mask = static_cast<uint8_t>((1u << rest) - 1);
      bytes[to / 8] = static_cast<uint8_t>(bytes[to / 8] | (value >> bit & mask) << to % 8);
      bit += rest;
    }
  };
  if (r.is_pc) put(pc, r.bits, 0);
  for (const DebugRegister::Part& part : r.parts)
    if (const int known = slots_[static_cast<size_t>(part.slot)]; known != kNoSlot) {
      const auto slot = static_cast<Slot>(known);
      put((slot_of_ ? slot_of_(core, slot) : backend_.slot(core, slot)) >> part.from, part.bits,
          part.at);
    }
  return bytes;
}

bool RegisterFile::write(uint32_t core, size_t number, std::span<const uint8_t> bytes) const {
  const DebugRegister& r = *registers_[number];
  const auto bit_of = [&](uint32_t at) { return uint64_t{bytes[at / 8]} >> at % 8 & 1; };
  for (const DebugRegister::Part& part : r.parts) {
    uint64_t value = 0;
    for (uint32_t bit = 0; bit < part.bits; ++bit) value |= bit_of(part.at + bit) << bit;
    const int slot = slots_[static_cast<size_t>(part.slot)];
    if (slot == kNoSlot) {
      if (value != 0) return false;
      continue;
    }
    const uint64_t mask = (~uint64_t{0} >> (64 - part.bits)) << part.from;
    const uint64_t before = backend_.slot(core, static_cast<Slot>(slot));
    backend_.set_slot(core, static_cast<Slot>(slot),
                      (before & ~mask) | (value << part.from & mask));
  }
  if (target_.settle)
    target_.settle(
        [&](Slot s) {
          return slots_[s] == kNoSlot ? 0 : backend_.slot(core, static_cast<Slot>(slots_[s]));
        },
        [&](Slot s, uint64_t value) {
          if (slots_[s] != kNoSlot) backend_.set_slot(core, static_cast<Slot>(slots_[s]), value);
        });
  return true;
}

std::vector<size_t> RegisterFile::at_each_stop() const {
  std::vector<size_t> numbers{static_cast<size_t>(target_.stack_pointer),
                              static_cast<size_t>(target_.frame_pointer)};
  for (size_t i = 0; i < registers_.size(); ++i)
    if (registers_[i]->is_pc) numbers.push_back(i);
  return numbers;
}

std::string RegisterFile::description() const {
  std::string xml =
      "<?xml version=\"1.0\"?><!DOCTYPE target SYSTEM \"gdb-target.dtd\">"
      "<target version=\"1.0\"><architecture>" +
      target_.architecture + "</architecture>";
  size_t number = 0;
  for (const DebugFeature& feature : target_.features) {
    xml += fmt::format("<feature name=\"{}\">{}", feature.name, feature.types);
    for (const DebugRegister& r : feature.registers)
      xml += fmt::format("<reg name=\"{}\" bitsize=\"{}\" type=\"{}\" regnum=\"{}\"/>", r.name,
                         r.bits, r.type, number++);
    xml += "</feature>";
  }
  return xml + "</target>";
}

}  // namespace gpusim::host::gdb
