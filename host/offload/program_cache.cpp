#include "host/offload/program_cache.h"

#include <algorithm>
#include <string_view>

#include "translator/common/translator.h"
#include "translator/module_io.h"

namespace gpusim::offload {

std::optional<ProgramCache::Result> ProgramCache::find(size_t hash, const Bytes& bytes) {
  const auto it = std::find_if(entries_.begin(), entries_.end(),
                               [&](const Entry& e) { return e.hash == hash && *e.bytes == bytes; });
  if (it == entries_.end()) return std::nullopt;
  entries_.splice(entries_.begin(), entries_, it);
  return Result{it->module, it->bytes, true};
}

ProgramCache::Result ProgramCache::get(Bytes bytes, const std::string& name) {
  const size_t hash = std::hash<std::string_view>{}(
      {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  {
    const std::lock_guard lock(mutex_);
    if (auto known = find(hash, bytes)) return *known;
  }
  auto module = std::make_shared<const Module>(is_module(bytes) ? read_module(bytes, name)
                                                                : translate_elf(bytes, name));
  const std::lock_guard lock(mutex_);
  // Another thread may have been as quick.
  if (auto known = find(hash, bytes)) return {known->module, known->bytes, false};
  const auto kept = std::make_shared<const Bytes>(std::move(bytes));
  entries_.push_front({hash, kept, module});
  bytes_ += kept->size();
  while (bytes_ > most_bytes_ && entries_.size() > 1) {
    bytes_ -= entries_.back().bytes->size();
    entries_.pop_back();
  }
  return {std::move(module), kept, false};
}

}  // namespace gpusim::offload
