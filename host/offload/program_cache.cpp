#include "host/offload/program_cache.h"

#include <algorithm>
#include <string_view>

namespace gpusim::offload {

std::optional<ProgramCache::Result> ProgramCache::find(size_t hash, const Bytes& bytes) {
  const auto it = std::find_if(entries_.begin(), entries_.end(),
                               [&](const Entry& e) { return e.hash == hash && *e.bytes == bytes; });
  if (it == entries_.end()) return std::nullopt;
  entries_.splice(entries_.begin(), entries_, it);
  return Result{it->program, it->bytes, true};
}

ProgramCache::Result ProgramCache::get(Bytes bytes, const std::string& name) {
  const size_t hash =
      std::hash<std::string_view>{}({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  {
    const std::lock_guard lock(mutex_);
    if (auto known = find(hash, bytes)) return *known;
  }
  auto program =
      std::make_shared<const Translator>(open_program(bytes, name, {}, Translated::kOnDemand));
  const std::lock_guard lock(mutex_);
  // Another thread may have been as quick.
  if (auto known = find(hash, bytes)) return {known->program, known->bytes, false};
  const auto kept = std::make_shared<const Bytes>(std::move(bytes));
  entries_.push_front({hash, kept, program});
  bytes_ += kept->size();
  while (bytes_ > most_bytes_ && entries_.size() > 1) {
    bytes_ -= entries_.back().bytes->size();
    entries_.pop_back();
  }
  return {std::move(program), kept, false};
}

}  // namespace gpusim::offload
