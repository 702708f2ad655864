#include "host/offload/kernel_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace gpusim::offload {
namespace {

constexpr uint64_t kNoteBytes = 128;

}  // namespace

KernelOutput::KernelOutput(uint64_t most_bytes, bool by_core)
    : most_bytes_(by_core && most_bytes >= 4 * kNoteBytes ? most_bytes - kNoteBytes : most_bytes),
      by_core_(by_core),
      has_note_(most_bytes_ != most_bytes) {}

void KernelOutput::add(uint32_t core, std::span<const uint8_t> bytes) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  written_bytes_ += text.size();
  const uint64_t room = is_full_ ? 0 : most_bytes_ - kept_.size();
  if (text.size() > room) {
    // Once something is lost, all that follows is: what is kept has no gaps.
    is_full_ = true;
    const size_t last_line = text.substr(0, room).rfind('\n');
    const size_t fitting = last_line == text.npos ? 0 : last_line + 1;
    lost_lines_ += static_cast<uint64_t>(std::ranges::count(text.substr(fitting), '\n'));
    text = text.substr(0, fitting);
  }
  if (text.empty()) return;
  if (by_core_ && (pieces_.empty() || pieces_.back().core != core))
    pieces_.push_back({core, kept_.size(), 0});
  if (by_core_) pieces_.back().size_bytes += text.size();
  kept_ += text;
}

std::string KernelOutput::text() const {
  std::string out;
  if (by_core_) {
    std::vector<Piece> pieces = pieces_;
    std::ranges::stable_sort(pieces, {}, &Piece::core);
    for (const Piece& p : pieces) out += std::string_view(kept_).substr(p.begin, p.size_bytes);
  } else {
    out = kept_;
  }
  if (is_full_ && has_note_)
    out += fmt::format("gpusim: {} more lines ({} bytes) of output were lost: a launch keeps {}\n",
                       lost_lines_, written_bytes_ - kept_.size(), most_bytes_ + kNoteBytes);
  return out;
}

}  // namespace gpusim::offload
