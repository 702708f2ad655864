// What somebody may have meant who gave a name that there is not: for the end of error messages.
#pragma once
#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

namespace gpusim {

// How many letters to insert, leave out, exchange or swap with a neighbour to make `a` from `b`, in
// any case of letters; `limit` + 1 if it is more than `limit`.
inline size_t edit_distance(std::string_view a, std::string_view b, size_t limit) {
  if (std::max(a.size(), b.size()) - std::min(a.size(), b.size()) > limit) return limit + 1;
  const auto same = [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  };
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + !same(a[i - 1], b[j - 1])});
      if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    // It only grows, but for two letters that are swapped.
    if (*std::min_element(row.begin(), row.end()) > limit + 1) return limit + 1;
    before.swap(last);
    last.swap(row);
  }
  return std::min(last[b.size()], limit + 1);
}

// " (did you mean NAME?)" with the first of the nearest names, or nothing if none is near: up to a
// third of the letters may be wrong.
template <class Names>
std::string did_you_mean(std::string_view given, const Names& names) {
  constexpr size_t kLongest = 100;  // of what somebody may have typed
  if (given.size() > kLongest) return {};
  size_t limit = std::max<size_t>(1, given.size() / 3);
  std::string nearest;
  for (const auto& name : names) {
    const size_t distance = edit_distance(given, name, limit);
    if (distance > limit || std::string_view(name).empty()) continue;
    nearest = name;
    if (distance == 0) break;
    limit = distance - 1;
  }
  return nearest.empty() ? "" : " (did you mean " + nearest + "?)";
}

}  // namespace gpusim
