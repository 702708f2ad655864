// The keys of a group's lanes (group.h) as vectors, for the SIMD target at hand.
#pragma once
#include <cstdint>

namespace gpusim::simd {

// All: `keys` has kMaxLanes elements, 64-byte aligned.

// The smallest key among the lanes of `mask`; ~0 if there is none.
uint64_t least_key(const uint64_t* keys, uint64_t mask);
// The lanes whose keys have this rank, waiting or not.
uint64_t lanes_with_rank(const uint64_t* keys, uint32_t rank);
// Sets the keys of the lanes of `mask`.
void fill_keys(uint64_t* keys, uint64_t mask, uint64_t key);

}  // namespace gpusim::simd
