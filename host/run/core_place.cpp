#include "host/run/core_place.h"

#include "device_sim/core/execute.h"
#include "translator/common/translator.h"

namespace gpusim::host {
namespace {

bool is_return_place(const Module& module, uint32_t uop) {
  return module.blocks[module.uop_block[uop]].first_uop == uop;
}

struct CoreContext {
  Backend& backend;
  uint32_t core;
  uint64_t get(Slot s) const { return backend.slot(core, s); }
  void set(Slot s, uint64_t value) const { backend.set_slot(core, s, value); }
};
struct NoMemory {
  uint32_t* pair_lock = nullptr;
  uint32_t journal_words = 0;
  template <class T>
  bool load(uint32_t, uint64_t, T*) const {
    return false;
  }
  template <class T>
  bool store(uint32_t, uint64_t, T) const {
    return false;
  }
  uint8_t* byte(uint32_t, uint64_t, uint8_t) const { return nullptr; }
  void note(uint32_t, uint64_t) const {}
  uint64_t next_stamp() const { return 0; }
  void signal_event() const {}
};

}  // namespace

uint64_t settled_pc(Backend& backend, const Module& module, uint32_t core) {
  uint32_t uop = backend.place(core);
  const uint32_t first = uop;
  CoreContext context{backend, core};
  for (size_t i = 0; uop < module.uops.size() && !is_return_place(module, uop); ++i) {
    constexpr size_t kMostMicroOps = 256;
    const Uop& u = module.uops[uop];
    if (u.op == Op::link) {
      uop = u.target();
      continue;
    }
    StopInfo stop{};
    if (i == kMostMicroOps || !op_info(u.op).name || !shape_info(op_info(u.op).shape).pure) break;
    execute(u, context, NoMemory{}, core, stop);
    ++uop;
  }
  if (uop != first) backend.start(core, uop);
  return place_pc(module, uop);
}

}  // namespace gpusim::host
