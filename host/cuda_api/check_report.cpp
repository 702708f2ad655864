#include "host/cuda_api/check_report.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "host/cuda_api/runtime.h"

namespace gpusim::cuda_api {
namespace {

constexpr size_t kMostMisuses = 1000;

}  // namespace

void CheckReport::begin(const std::string& folder, int process) {
  if (!folder.empty()) found_ = fmt::format("{}/{}.found", folder, process);
}

void CheckReport::mark_found() {
  if (is_marked_ || found_.empty()) return;
  is_marked_ = true;
  if (FILE* const file = std::fopen(found_.c_str(), "we"))
    std::fclose(file);
  else
    say(fmt::format("{}: {}", found_, std::strerror(errno)));
}

bool CheckReport::add(uint64_t launch, std::vector<ptx::Finding> findings,
                      const std::optional<ptx::Fault>& fault) {
  const std::lock_guard lock(mutex_);
  bool explains_fault = false;
  for (ptx::Finding& f : findings) {
    mark_found();
    const auto [at, is_new] =
        number_of_.try_emplace(Key(f.kind, f.kernel, f.places), entries_.size());
    if (!is_new) {
      Entry& before = entries_[at->second];
      before.finding.count += f.count;
      ++before.launches;
      continue;
    }
    say(fmt::format("launch {}: {}\n    seen {} times", launch, f.text, f.count));
    explains_fault |= fault && ptx::explains(f, *fault);
    std::string kind = ptx::kind_text(f.kind);
    entries_.push_back({std::move(f), std::move(kind), launch, 1});
  }
  return explains_fault;
}

void CheckReport::add_misuse(const std::string& kind, const void* address,
                             const std::string& text) {
  const std::lock_guard lock(mutex_);
  mark_found();
  if (++misuses_ > kMostMisuses) return;
  say(fmt::format("{}: {}", kind, text));
  if (misuses_ == kMostMisuses) say("further wrong calls are not told");
  ptx::Finding f;
  f.address = reinterpret_cast<uintptr_t>(address);
  f.count = 1;
  f.text = fmt::format("{}: {}", kind, text);
  entries_.push_back({std::move(f), kind, 0, 0});
}

void CheckReport::note_fault() {
  const std::lock_guard lock(mutex_);
  mark_found();
}

void CheckReport::add_leak(const Block& block) {
  const std::lock_guard lock(mutex_);
  if (!block.is_registered) leaks_.push_back(block);
}

bool CheckReport::is_empty() const {
  const std::lock_guard lock(mutex_);
  return entries_.empty() && leaks_.empty();
}

void CheckReport::add_to(nlohmann::ordered_json& root) const {
  const std::lock_guard lock(mutex_);
  auto& list = root["findings"] = nlohmann::ordered_json::array();
  for (const Entry& e : entries_) {
    nlohmann::ordered_json item = ptx::finding_json(e.finding);
    item["kind"] = e.kind;
    item["launch"] = e.launch;
    item["launches"] = e.launches;
    list.push_back(std::move(item));
  }
  auto& leaks = root["leaks"] = nlohmann::ordered_json::array();
  for (const Block& b : leaks_)
    leaks.push_back({{"address", reinterpret_cast<uintptr_t>(b.address)},
                     {"size_bytes", b.size_bytes},
                     {"text", text_of(b)}});
}

}  // namespace gpusim::cuda_api
