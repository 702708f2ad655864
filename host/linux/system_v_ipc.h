// System V semaphores, message queues and shared memory of one guest process. Nobody else sees them:
// the host's are not used.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "host/linux/file_table.h"

namespace gpusim::host {

struct IpcObject {
  int32_t key = 0;
  uint32_t mode = 0;
  uint32_t owner = 0, group = 0;
  int64_t changed_at = 0;  // seconds
};

struct SemaphoreSet : IpcObject {
  struct Semaphore {
    uint16_t value = 0;
    int32_t last_pid = 0;
  };
  std::vector<Semaphore> semaphores;
  int64_t used_at = 0;
  struct Wait {
    uint16_t number = 0;
    bool for_zero = false;
  };
  std::map<uint32_t, Wait> waits;  // by core; of cores that wait no more, too
};

struct MessageQueue : IpcObject {
  struct Message {
    int64_t type = 0;
    std::vector<uint8_t> bytes;
  };
  std::deque<Message> messages;
  uint64_t bytes = 0, most_bytes = 16384;
  int64_t sent_at = 0, received_at = 0;
  int32_t sender = 0, receiver = 0;
};

struct SharedSegment : IpcObject {
  uint64_t size_bytes = 0;
  FileRef memory;
  uint64_t attached = 0;  // how often
  bool is_removed = false;
  int64_t attached_at = 0, detached_at = 0;
  int32_t creator = 0, last_pid = 0;
};

// Objects of one kind by identifier. Identifiers are not used again.
template <class T>
class IpcTable {
 public:
  static constexpr size_t kMost = 4096;
  T* find(int64_t id) {
    const auto it = objects_.find(id);
    return it == objects_.end() ? nullptr : &it->second;
  }
  // Of a key that is not IPC_PRIVATE; -1: none.
  int64_t id_of(int32_t key) const {
    for (const auto& [id, object] : objects_)
      if (object.key == key && key != 0) return id;
    return -1;
  }
  bool is_full() const { return objects_.size() >= kMost; }
  bool empty() const { return objects_.empty(); }
  int64_t add(T object) {
    objects_.emplace(next_, std::move(object));
    return next_++;
  }
  void remove(int64_t id) { objects_.erase(id); }
  template <class F>
  void each(F f) {
    for (auto& [id, object] : objects_) f(object);
  }

 private:
  std::map<int64_t, T> objects_;
  int64_t next_ = 0;
};

struct SystemVIpc {
  IpcTable<SemaphoreSet> semaphores;
  IpcTable<MessageQueue> queues;
  IpcTable<SharedSegment> segments;
  std::map<uint64_t, int64_t> attachments;  // address: identifier of a segment
  bool empty() const { return semaphores.empty() && queues.empty() && segments.empty(); }
  // A thread is known by another number.
  void move(uint32_t from, uint32_t to) {
    semaphores.each([&](SemaphoreSet& set) {
      set.waits.erase(to);
      if (auto wait = set.waits.extract(from)) {
        wait.key() = to;
        set.waits.insert(std::move(wait));
      }
    });
  }
};

}  // namespace gpusim::host
