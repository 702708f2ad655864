#include "host/uninitialised/shadow.h"

#include <algorithm>
#include <cstring>

namespace gpusim::host::uninitialised {

const Shadow::Page* Shadow::find(Key key) {
  static const Page kUndefined = [] {
    Page page;
    page.undefined.fill(0xff);
    return page;
  }();
  Recent& recent = recent_[key % recent_.size()];
  if (recent.key != key) {
    const auto place = pages_.find(key);
    Page* const own = place == pages_.end() ? nullptr : place->second.get();
    recent = {key, place == pages_.end() || own ? own : &kUndefined, own};
  }
  return recent.page;
}

Shadow::Page& Shadow::make(Key key) {
  Recent& recent = recent_[key % recent_.size()];
  if (recent.key == key && recent.own) return *recent.own;
  const auto [place, is_new] = pages_.try_emplace(key);
  std::unique_ptr<Page>& page = place->second;
  if (!page) {
    page = std::make_unique<Page>();
    if (!is_new) page->undefined.fill(0xff);
    size_bytes_ += sizeof(Page);
  }
  recent = {key, page.get(), page.get()};
  return *page;
}

uint64_t Shadow::load(uint32_t space, uint64_t address, uint32_t size_bytes, OriginId* origin) {
  const uint64_t offset = address % kPageBytes;
  uint64_t undefined = 0;
  const uint32_t here = static_cast<uint32_t>(std::min<uint64_t>(size_bytes, kPageBytes - offset));
  if (const Page* const page = find(key_of(space, address))) {
    std::memcpy(&undefined, &page->undefined[offset], here);
    if (undefined != 0 && page->origins) {
      const uint32_t first = static_cast<uint32_t>(__builtin_ctzll(undefined)) / 8;
      *origin = page->origins->of_word[(offset + first) / 4];
    }
  }
  if (here < size_bytes) {
    OriginId second = 0;
    const uint64_t rest = load(space, address + here, size_bytes - here, &second);
    if (undefined == 0) *origin = second;
    undefined |= rest << (8 * here);
  }
  return undefined;
}

void Shadow::store(uint32_t space, uint64_t address, uint32_t size_bytes, uint64_t undefined,
                   OriginId origin) {
  const uint64_t offset = address % kPageBytes;
  const uint32_t here = static_cast<uint32_t>(std::min<uint64_t>(size_bytes, kPageBytes - offset));
  const Key key = key_of(space, address);
  const uint64_t bits = here == 8 ? undefined : undefined & ((uint64_t{1} << (8 * here)) - 1);
  if (bits != 0 || find(key)) {
    Page* const page = &make(key);
    std::memcpy(&page->undefined[offset], &bits, here);
    if (bits != 0) {
      if (origin != 0 && !page->origins) {
        page->origins = std::make_unique<Origins>();
        size_bytes_ += sizeof(Origins);
      }
      if (page->origins)
        for (uint64_t word = offset / 4; word <= (offset + here - 1) / 4; ++word)
          page->origins->of_word[word] = origin;
    }
  }
  if (here < size_bytes)
    store(space, address + here, size_bytes - here, undefined >> (8 * here), origin);
}

void Shadow::fill(uint32_t space, uint64_t address, uint64_t size_bytes, uint8_t undefined) {
  while (size_bytes != 0) {
    const uint64_t offset = address % kPageBytes;
    const uint64_t here = std::min(size_bytes, kPageBytes - offset);
    const Key key = key_of(space, address);
    if (here == kPageBytes) {
      if (const auto place = pages_.find(key); place != pages_.end()) {
        if (const Page* const page = place->second.get())
          size_bytes_ -= sizeof(Page) + (page->origins ? sizeof(Origins) : 0);
        pages_.erase(place);
      }
      if (undefined != 0) pages_.emplace(key, nullptr);
      recent_[key % recent_.size()] = {};
    } else if (undefined != 0 || find(key)) {
      Page& page = make(key);
      std::memset(&page.undefined[offset], undefined, here);
      if (page.origins && undefined != 0) {
        OriginId* const origins = page.origins->of_word.data();
        std::fill(origins + offset / 4, origins + (offset + here + 3) / 4, 0);
      }
    }
    address += here;
    size_bytes -= here;
  }
}

void Shadow::read(uint32_t space, uint64_t address, std::span<uint8_t> undefined) {
  for (size_t done = 0; done < undefined.size();) {
    const uint64_t offset = (address + done) % kPageBytes;
    const auto here = std::min<size_t>(undefined.size() - done, kPageBytes - offset);
    if (const Page* const page = find(key_of(space, address + done)))
      std::memcpy(&undefined[done], &page->undefined[offset], here);
    else
      std::memset(&undefined[done], 0, here);
    done += here;
  }
}

void Shadow::write(uint32_t space, uint64_t address, std::span<const uint8_t> undefined) {
  for (size_t i = 0; i < undefined.size(); ++i) store(space, address + i, 1, undefined[i], 0);
}

uint64_t Shadow::find_undefined(uint32_t space, uint64_t address, uint64_t size_bytes) {
  const uint64_t end = address + size_bytes;
  while (address < end) {
    const uint64_t offset = address % kPageBytes;
    const uint64_t here = std::min(end - address, kPageBytes - offset);
    if (const Page* const page = find(key_of(space, address))) {
      const auto begin = page->undefined.begin() + static_cast<ptrdiff_t>(offset);
      const auto last = begin + static_cast<ptrdiff_t>(here);
      const auto found = std::find_if(begin, last, [](uint8_t bits) { return bits != 0; });
      if (found != last) return address + static_cast<uint64_t>(found - begin);
    }
    address += here;
  }
  return end;
}

}  // namespace gpusim::host::uninitialised
