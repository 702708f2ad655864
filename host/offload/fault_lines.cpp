#include "host/offload/fault_lines.h"

#include <algorithm>
#include <system_error>

#include "translator/module_io.h"

namespace gpusim::offload {
namespace {

constexpr uint32_t kMostSearches = 4;
constexpr size_t kMostKnown = 4096;  // places of a program
constexpr size_t kMostFileBytes = size_t{64} << 20;

}  // namespace

std::shared_ptr<LineSearches::Search> LineSearches::start(const ProgramLines& lines,
                                                          std::span<const uint64_t> places) {
  std::vector<uint64_t> wanted(places.begin(), places.end());
  std::erase_if(wanted, [&](uint64_t place) { return lines.known.contains(place); });
  const auto file = lines.file.lock();
  if (wanted.empty() || !find_ || lines.is_futile || !file || is_module(*file) ||
      file->size() > kMostFileBytes || threads_.running() >= kMostSearches)
    return nullptr;
  auto search = std::make_shared<Search>();
  try {
    threads_.start([this, search, file, wanted] {
      try {
        search->found = find_(*file, wanted);
      } catch (const std::exception&) {  // no memory; lines are not worth more
      }
      search->ready.store(true, std::memory_order_release);
    });
  } catch (const std::system_error&) {
    return nullptr;
  }
  return search;
}

void LineSearches::learn(ProgramLines& lines, Search& search) {
  lines.is_futile |= search.found.empty();
  if (lines.known.size() + search.found.size() > kMostKnown) lines.known.clear();
  lines.known.merge(search.found);
}

}  // namespace gpusim::offload
