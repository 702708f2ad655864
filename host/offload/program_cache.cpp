#include "host/offload/program_cache.h"

#include <algorithm>
#include <string_view>

#include "translator/common/translator.h"
#include "translator/module_io.h"

namespace gpusim::offload {

std::shared_ptr<const Module> ProgramCache::find(size_t hash, std::span<const uint8_t> bytes) {
  const auto it = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) {
    return e.hash == hash && std::ranges::equal(e.bytes, bytes);
  });
  if (it == entries_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, it);
  return it->module;
}

ProgramCache::Result ProgramCache::get(std::span<const uint8_t> bytes, const std::string& name) {
  const size_t hash = std::hash<std::string_view>{}(
      {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  {
    const std::lock_guard lock(mutex_);
    if (auto module = find(hash, bytes)) return {std::move(module), true};
  }
  auto module = std::make_shared<const Module>(is_module(bytes) ? read_module(bytes, name)
                                                                : translate_elf(bytes, name));
  const std::lock_guard lock(mutex_);
  if (find(hash, bytes)) return {std::move(module), false};  // another thread was as quick
  entries_.push_front({hash, {bytes.begin(), bytes.end()}, module});
  bytes_ += bytes.size();
  while (bytes_ > most_bytes_ && entries_.size() > 1) {
    bytes_ -= entries_.back().bytes.size();
    entries_.pop_back();
  }
  return {std::move(module), false};
}

}  // namespace gpusim::offload
