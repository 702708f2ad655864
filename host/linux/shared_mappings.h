// Files that a guest mapped shared: the host's pages of them lie in the linear zone's storage, so
// that all mappings of a file, read() and write() see the same bytes.
#pragma once
#include <atomic>
#include <csignal>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "host/linux/file_table.h"
#include "host/linux/shared_futexes.h"

namespace gpusim::host {

class SharedMappings {
 public:
  // The guest's permissions of a page. Called in a handler of SIGBUS.
  using RightsOf = std::function<uint8_t(uint64_t page)>;
  // `storage`: of the zone that begins at `base`; null where the host cannot reach it. `on_first`:
  // a file is about to be mapped, whose words others may read and write at any time.
  SharedMappings(uint8_t* storage, uint64_t base, uint64_t size_bytes, RightsOf rights_of,
                 std::function<void()> on_first)
      : storage_(storage),
        base_(base),
        size_bytes_(size_bytes),
        rights_of_(std::move(rights_of)),
        on_first_(std::move(on_first)) {}
  ~SharedMappings();
  SharedMappings(const SharedMappings&) = delete;
  SharedMappings& operator=(const SharedMappings&) = delete;

  struct Mapping {
    uint64_t begin = 0, end = 0;
    FileRef file;
    uint64_t offset = 0;  // of `begin` in the file
    bool is_writable = false;
    uint64_t device = 0, inode = 0;  // of the file
    // The lowest page that was accessed although the file ends before it, or has no room on its
    // disk; 0: none. It and what follows with the same permissions reads zeros until
    // take_bus_errors().
    mutable uint64_t lost = 0;
  };

  bool are_possible() const { return storage_ != nullptr; }
  bool empty() const { return mappings_.empty(); }
  // Whole pages of the zone without such a mapping. 0 or an error number.
  int map(uint64_t address, uint64_t size_bytes, const FileRef& file, uint64_t offset,
          bool to_write);
  // The range is zeroed memory of the guest's own again, where a file was.
  void unmap(uint64_t address, uint64_t size_bytes);
  // Brings what was stored to the disk; 0 or an error number.
  int sync(uint64_t address, uint64_t size_bytes) const;
  // The mapping that holds the whole range; null: none does.
  const Mapping* find(uint64_t address, uint64_t size_bytes) const;
  std::vector<Mapping> overlapping(uint64_t address, uint64_t size_bytes) const;

  // Where an aligned word of four bytes is in its file; nothing: it is not in such a mapping.
  std::optional<FutexPlace> place_of(uint64_t address) const;
  // The lowest address of that word.
  uint64_t lowest_address(const FutexPlace& place) const;
  // Where the host has it; null: not in such a mapping, or it cannot be written.
  uint32_t* word(uint64_t address) const;

  // The pages that were lost, one of each mapping, which from now on are their files' again: a file
  // may grow. Accesses meanwhile read zeros or were lost themselves.
  std::vector<uint64_t> take_bus_errors();

 private:
  int place(const Mapping& mapping) const;
  static void on_bus_error(int signal, siginfo_t* info, void* context);
  bool survive(uintptr_t host_address);
  uint8_t* pointer(uint64_t address) const { return storage_ + (address - base_); }

  uint8_t* storage_;
  uint64_t base_, size_bytes_;
  RightsOf rights_of_;
  std::function<void()> on_first_;
  std::map<uint64_t, Mapping> mappings_;  // by first address
  bool is_watched_ = false;
  std::atomic<bool> any_lost_{false};
};

}  // namespace gpusim::host
