// The heap and the mappings of one guest address space: bookkeeping only, no memory.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace gpusim::host {

struct AddressRange {
  uint64_t begin = 0, end = 0;
  uint64_t size() const { return end - begin; }
  bool operator==(const AddressRange&) const = default;
};

// The program break grows upwards from `first_break`, mappings are placed downwards from `limit`,
// or near the program, between `start` and the first break. A mapping at a given place may replace
// pages of the heap, which leaves the break where it is. All ranges are whole pages.
class AddressSpace {
 public:
  AddressSpace(uint64_t start, uint64_t limit, uint64_t first_break)
      : start_(start),
        limit_(limit),
        first_break_(first_break),
        break_(first_break),
        mapped_break_(first_break) {}
  AddressSpace(uint64_t start, uint64_t limit) : AddressSpace(start, limit, start) {}

  uint64_t program_break() const { return break_; }
  uint64_t start() const { return start_; }
  // The pages to map (grown) or to unmap (shrunk); nothing when the break cannot go there.
  struct BreakChange {
    AddressRange map;
    std::vector<AddressRange> unmap;
  };
  std::optional<BreakChange> set_break(uint64_t to);

  // Room for a mapping of whole pages: at `hint` if that is free, else anywhere.
  std::optional<uint64_t> place(uint64_t size_bytes, uint64_t hint = 0);
  // The lowest place for it between the two addresses, if there is one.
  std::optional<uint64_t> place_between(uint64_t size_bytes, uint64_t first, uint64_t end);
  // A mapping at a given place; what was mapped there is returned and replaced. Only between `start`
  // and the limit.
  bool can_place_at(uint64_t address, uint64_t size_bytes) const;
  std::vector<AddressRange> place_at(uint64_t address, uint64_t size_bytes);
  // Forgets what is mapped in the range and returns it.
  std::vector<AddressRange> remove(uint64_t address, uint64_t size_bytes);
  // Of the heap or of mappings: all of the range, some of it, how much altogether.
  bool is_mapped(uint64_t address, uint64_t size_bytes) const;
  bool is_free(uint64_t address, uint64_t size_bytes) const;
  uint64_t mapped_bytes() const;
  const std::map<uint64_t, uint64_t>& mapped() const { return mapped_; }

  // For checkpoints, which define it.
  template <class Archive>
  void describe(Archive& a);

 private:
  void insert(uint64_t begin, uint64_t end);

  uint64_t start_, limit_, first_break_, break_, mapped_break_;
  std::map<uint64_t, uint64_t> mapped_;  // begin -> end, heap and mappings
};

}  // namespace gpusim::host
