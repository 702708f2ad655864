#include "emulated/store_buffer.h"

#include <algorithm>
#include <cstring>

#include "standin/lanes.h"
#include "standin/random.h"
#include "standin/store_buffer.h"

namespace cuda_emulated {

bool delays_stores = false;

namespace {

constexpr size_t kMostStores = 8;  // of a lane
constexpr uint32_t kGoesOneIn = 4;

bool overlaps(const DelayedStore& s, const void* place, size_t size) {
  const auto* const begin = static_cast<const uint8_t*>(place);
  return s.to < begin + size && begin < s.to + s.size;
}

void do_store(const DelayedStore& s) { std::memcpy(s.to, &s.value, s.size); }

std::vector<DelayedStore>& own_stores() {
  return running().warp->stores[running().lane];
}

// One that no earlier one to the same bytes keeps back.
void settle_some(std::vector<DelayedStore>& stores) {
  size_t i = chance().below(static_cast<uint32_t>(stores.size()));
  for (size_t earlier = 0; earlier < i; ++earlier)
    if (overlaps(stores[earlier], stores[i].to, stores[i].size)) i = earlier;
  do_store(stores[i]);
  stores.erase(stores.begin() + static_cast<std::ptrdiff_t>(i));
}

}  // namespace

void store_later(void* to, uint64_t value, uint32_t size) {
  std::vector<DelayedStore>& stores = own_stores();
  if (stores.size() == kMostStores) settle_some(stores);
  stores.push_back({static_cast<uint8_t*>(to), value, size});
}

bool load_own(const void* from, uint64_t& value, uint32_t size) {
  const std::vector<DelayedStore>& stores = own_stores();
  const auto last = std::find_if(stores.rbegin(), stores.rend(), [&](const DelayedStore& s) {
    return overlaps(s, from, size);
  });
  if (last == stores.rend()) return false;
  if (last->to == from && last->size == size) {
    value = last->value;
    return true;
  }
  settle(from, size);  // of parts of it
  return false;
}

void settle(const void* place, size_t size) {
  std::vector<DelayedStore>& stores = own_stores();
  const auto last = std::find_if(stores.rbegin(), stores.rend(), [&](const DelayedStore& s) {
    return overlaps(s, place, size);
  });
  // Earlier ones go first: some may have bytes in common with it.
  std::for_each(stores.begin(), last.base(), do_store);
  stores.erase(stores.begin(), last.base());
}

void settle_all() {
  std::vector<DelayedStore>& stores = own_stores();
  std::for_each(stores.begin(), stores.end(), do_store);
  stores.clear();
}

void settle_by_chance(Warp& warp) {
  for (std::vector<DelayedStore>& stores : warp.stores)
    if (!stores.empty() && chance().below(kGoesOneIn) == 0) settle_some(stores);
}

}  // namespace cuda_emulated
