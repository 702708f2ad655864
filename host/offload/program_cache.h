// Programs that were opened before, for whoever brings the same bytes again.
#pragma once
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "translator/common/translator.h"

namespace gpusim::offload {

class ProgramCache {
 public:
  explicit ProgramCache(uint64_t most_bytes) : most_bytes_(most_bytes) {}

  using Bytes = std::vector<uint8_t>;
  struct Result {
    std::shared_ptr<const Translator> program;
    std::weak_ptr<const Bytes> bytes;  // as it was brought; gone when the cache needs the room
    bool cached = false;
  };
  /// Opens it if need be, to be translated on demand where that can be. An ELF file or a module
  /// file; gpusim::Error for others. Any thread.
  Result get(Bytes bytes, const std::string& name);

 private:
  struct Entry {
    size_t hash = 0;
    std::shared_ptr<const Bytes> bytes;
    std::shared_ptr<const Translator> program;
  };
  std::optional<Result> find(size_t hash, const Bytes& bytes);

  const uint64_t most_bytes_;  // of programs as they were brought
  std::mutex mutex_;
  std::list<Entry> entries_;  // most recently used first
  uint64_t bytes_ = 0;
};

}  // namespace gpusim::offload
