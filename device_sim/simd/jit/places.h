// Scattered accesses whose lanes turned out to be alike, or neighbours, chunk by chunk: a CTA's
// threads most often read one element by rows of threads, and neighbours by columns, which is no
// stride over all lanes of a group. Each chunk then has one place, and needs no address per lane.
#pragma once
#include <cstdint>

#include "device_sim/simd/jit/chunk.h"

namespace gpusim::simd {

// What the lanes of each chunk access.
enum class Togetherness : uint8_t { kNone, kAlike, kNeighbours };

struct Places {
  x86::Gp least, most;  // guest addresses of elements, but for their displacement
  x86::Mem of_chunks;   // the first lane's address of each, at the byte of its lane's number
};

// Emits a loop over `lanes` lanes that finds them, and goes to `exit` if the lanes of some chunk
// are not together. `addresses(chunk)` emits those of a chunk. `note(first, former)` emits what
// shall be done with a chunk's place, and with the one that `of_chunks` has of an earlier pass.
template <class Isa, class Addresses, class Note>
Places find_places(Isa& isa, const GroupOperands& operands, int lanes, Togetherness togetherness,
                   int size, const asmjit::Label& exit, Addresses addresses, Note note) {
  using Reg = typename Isa::Reg;
  constexpr int kHalf = kChunkLanes<Isa> / 2;
  x86::Compiler& cc = isa.cc;
  const bool are_neighbours = togetherness == Togetherness::kNeighbours;
  const Places places{cc.newUInt64(), cc.newUInt64(), cc.newStack(kMaxLanes + 8, 64)};
  std::array<uint64_t, kHalf> steps[2];
  for (size_t h = 0; h < 2; ++h)
    for (size_t k = 0; k < kHalf; ++k) steps[h][k] = (h * kHalf + k) * static_cast<uint64_t>(size);

  Chunk<Isa> chunk(isa, operands);
  const x86::Gp lane = chunk.lane = cc.newUInt64("placed_lane"), first = cc.newUInt64();
  const Reg differ = isa.fresh();
  const asmjit::Label loop = cc.newLabel();
  isa.clear(differ);
  cc.mov(places.least, -1);
  cc.xor_(places.most, places.most);
  cc.xor_(lane, lane);
  cc.bind(loop);
  const auto at = addresses(chunk);
  const Reg expected = isa.fresh();
  cc.vmovq(first, at.r[0].xmm());
  isa.broadcast64(expected, at.r[0].xmm());
  for (size_t h = 0; h < 2; ++h) {
    const Reg z = isa.fresh();
    if (are_neighbours) {
      cc.vpaddq(z, expected, isa.constant(steps[h].data(), sizeof steps[h]));
      cc.emit(Isa::kXor[1], z, z, at.r[h]);
    } else {
      cc.emit(Isa::kXor[1], z, expected, at.r[h]);
    }
    cc.emit(Isa::kOr[1], differ, differ, z);
  }
  x86::Mem place = places.of_chunks.cloneResized(8);
  place.setIndex(lane);
  note(first, place);
  cc.mov(place, first);
  cc.cmp(first, places.least);
  cc.cmovb(places.least, first);
  cc.cmp(first, places.most);
  cc.cmova(places.most, first);
  cc.add(lane, kChunkLanes<Isa>);
  cc.cmp(lane, lanes);
  cc.jb(loop);
  const Reg none = isa.fresh();
  isa.clear(none);
  isa.jump_if_differ64(differ, none, exit);
  // A sum that wrapped is refused with what memory is there: `most` is below `least`.
  if (are_neighbours) cc.add(places.most, (kChunkLanes<Isa> - 1) * size);
  return places;
}

}  // namespace gpusim::simd
