// System V IPC: semaphores, message queues, shared memory.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "host/linux/calls.h"
#include "host/linux/guest_abi.h"
#include "host/linux/pages.h"
#include "host/linux/waiting.h"

namespace gpusim::host {
namespace {

// linux/ipc.h
constexpr int64_t kCreate = 01000, kExclusive = 02000, kNoWait = 04000;
constexpr int64_t kRemove = 0, kSet = 1, kStat = 2;
constexpr int64_t kOldForm = 0x100;  // IPC_64, which 64-bit systems ignore

// asm-generic/ipcbuf.h, sembuf.h, msgbuf.h, shmbuf.h, of 64-bit systems
struct GuestPermissions {
  int32_t key;
  uint32_t uid, gid, cuid, cgid, mode;
  uint16_t sequence, pad;
  uint32_t pad2;
  uint64_t unused[2];
};
struct GuestSemaphoreSet {
  GuestPermissions permissions;
  int64_t used_at, changed_at;
  uint64_t count, unused[2];
};
struct GuestQueue {
  GuestPermissions permissions;
  int64_t sent_at, received_at, changed_at;
  uint64_t bytes, count, most_bytes;
  int32_t sender, receiver;
  uint64_t unused[2];
};
struct GuestSegment {
  GuestPermissions permissions;
  uint64_t size_bytes;
  int64_t attached_at, detached_at, changed_at;
  int32_t creator, last_pid;
  uint64_t attached, unused[2];
};
static_assert(sizeof(GuestPermissions) == 48 && sizeof(GuestSemaphoreSet) == 88 &&
              sizeof(GuestQueue) == 120 && sizeof(GuestSegment) == 112);

int64_t now() { return static_cast<int64_t>(::time(nullptr)); }
int32_t pid_of(const Call& call) { return static_cast<int32_t>(call.process->pid); }

GuestPermissions permissions_of(const IpcObject& o) {
  return {.key = o.key, .uid = o.owner, .gid = o.group, .cuid = getuid(), .cgid = getgid(),
          .mode = o.mode, .sequence = 0, .pad = 0, .pad2 = 0, .unused = {}};
}

// semget and its kin: the identifier of a key's object, made if the flags say so.
template <class T, class Fits, class Make>
Reply get(IpcTable<T>& table, int64_t key, int64_t flags, Fits fits, Make make) {
  const int64_t known = table.id_of(static_cast<int32_t>(key));
  if (known >= 0) {
    if ((flags & kCreate) && (flags & kExclusive)) return Reply::error(EEXIST);
    return fits(*table.find(known)) ? Reply::result(known) : Reply::error(EINVAL);
  }
  if (key != 0 && !(flags & kCreate)) return Reply::error(ENOENT);
  if (table.is_full()) return Reply::error(ENOSPC);
  T object{};
  object.key = static_cast<int32_t>(key);
  object.mode = static_cast<uint32_t>(flags & 0777);
  object.owner = getuid();
  object.group = getgid();
  object.changed_at = now();
  if (const int error = make(object)) return Reply::error(error);
  return Reply::result(table.add(std::move(object)));
}

// IPC_SET: owner and mode, as the guest gives them.
int set_permissions(const Call& call, uint64_t address, IpcObject& object) {
  GuestPermissions wish;
  if (!call.memory.load(address, &wish)) return EFAULT;
  object.owner = wish.uid;
  object.group = wish.gid;
  object.mode = wish.mode & 0777;
  object.changed_at = now();
  return 0;
}

template <class T>
Reply store(const Call& call, uint64_t address, const T& value) {
  return call.memory.store(address, value) ? Reply::result(0) : Reply::error(EFAULT);
}

// What waits may find that its object is gone.
int gone(Kernel& kernel, const Call& call) { return kernel.is_retry(call.core) ? EIDRM : EINVAL; }

// --- semaphores

constexpr uint64_t kMostSemaphores = 32000, kMostOperations = 500;
constexpr int32_t kMostValue = 32767;

struct SemaphoreChange {  // struct sembuf
  uint16_t number;
  int16_t change;
  int16_t flags;
};

Reply operate(Kernel& kernel, Call& call) {
  SemaphoreSet* set = call.process->ipc.semaphores.find(call.int_arg(0));
  if (call.args[2] == 0) return Reply::error(EINVAL);
  if (call.args[2] > kMostOperations) return Reply::error(E2BIG);
  std::vector<SemaphoreChange> operations(call.args[2]);
  if (!call.memory.read(call.args[1], {reinterpret_cast<uint8_t*>(operations.data()),
                                       operations.size() * sizeof(SemaphoreChange)}))
    return Reply::error(EFAULT);
  if (!set) return Reply::error(gone(kernel, call));
  set->waits.erase(call.core);
  std::vector<SemaphoreSet::Semaphore> next = set->semaphores;
  for (const SemaphoreChange& o : operations)
    if (o.number >= next.size()) return Reply::error(EFBIG);
  for (const SemaphoreChange& o : operations) {
    SemaphoreSet::Semaphore& s = next[o.number];
    const int32_t value = s.value + o.change;
    if (value > kMostValue) return Reply::error(ERANGE);
    if (value < 0 || (o.change == 0 && value != 0)) {
      const Thread& thread = kernel.thread(call.core);
      if ((o.flags & kNoWait) || is_over(thread)) return Reply::error(EAGAIN);
      set->waits[call.core] = {o.number, o.change == 0};
      return kernel.park_for_retry(call, {});
    }
    s.value = static_cast<uint16_t>(value);
    s.last_pid = pid_of(call);
  }
  set->semaphores = std::move(next);
  set->used_at = now();
  return Reply::result(0);
}

// --- message queues

constexpr uint64_t kMostMessage = 8192;
constexpr int64_t kTruncate = 010000, kExcept = 020000;

std::deque<MessageQueue::Message>::iterator choose(MessageQueue& queue, int64_t type, bool except) {
  auto& list = queue.messages;
  if (type == 0) return list.begin();
  if (type > 0)
    return std::find_if(list.begin(), list.end(),
                        [&](const auto& m) { return (m.type == type) != except; });
  const auto lowest = std::min_element(list.begin(), list.end(), [](const auto& a, const auto& b) {
    return a.type < b.type;
  });
  const int64_t most = type == INT64_MIN ? INT64_MAX : -type;
  return lowest != list.end() && lowest->type <= most ? lowest : list.end();
}

// --- shared memory

constexpr int64_t kReadOnly = 010000, kRound = 020000, kRemap = 040000;

void detach(Kernel& kernel, Call& call, std::map<uint64_t, int64_t>::iterator attachment) {
  SystemVIpc& ipc = call.process->ipc;
  const auto [address, id] = *attachment;
  ipc.attachments.erase(attachment);
  SharedSegment& segment = *ipc.segments.find(id);
  // The guest may have unmapped or replaced parts of it.
  for (const SharedMappings::Mapping& m :
       kernel.shared_mappings().overlapping(address, page_up(segment.size_bytes))) {
    if (m.file != segment.memory || m.begin - address != m.offset) continue;
    for (const AddressRange& r : call.process->memory.remove(m.begin, m.end - m.begin))
      unmap_pages(kernel, call.core, r);
  }
  segment.detached_at = now();
  segment.last_pid = pid_of(call);
  if (--segment.attached == 0 && segment.is_removed) ipc.segments.remove(id);
}

}  // namespace

Reply sys_semget(Kernel&, Call& call) {
  const int64_t count = call.int_arg(1);
  if (count < 0 || count > static_cast<int64_t>(kMostSemaphores)) return Reply::error(EINVAL);
  return get(
      call.process->ipc.semaphores, call.int_arg(0), call.int_arg(2),
      [&](const SemaphoreSet& s) { return static_cast<size_t>(count) <= s.semaphores.size(); },
      [&](SemaphoreSet& s) {
        s.semaphores.resize(static_cast<size_t>(count));
        return count == 0 ? EINVAL : 0;
      });
}

Reply sys_semop(Kernel& kernel, Call& call) { return operate(kernel, call); }
Reply sys_semtimedop(Kernel& kernel, Call& call) {
  if (const int error = take_timeout(kernel.thread(call.core), call, call.args[3]))
    return Reply::error(error);
  return operate(kernel, call);
}

Reply sys_semctl(Kernel& kernel, Call& call) {
  constexpr int64_t kGetPid = 11, kGetValue = 12, kGetAll = 13, kGetWaiting = 14,
                    kGetWaitingForZero = 15, kSetValue = 16, kSetAll = 17;
  SemaphoreSet* set = call.process->ipc.semaphores.find(call.int_arg(0));
  if (!set) return Reply::error(EINVAL);
  const int64_t number = call.int_arg(1), command = call.int_arg(2) & ~kOldForm;
  const uint64_t argument = call.args[3];
  auto& list = set->semaphores;
  const bool exists = number >= 0 && number < static_cast<int64_t>(list.size());
  switch (command) {
    case kRemove:
      call.process->ipc.semaphores.remove(call.int_arg(0));
      return Reply::result(0);
    case kSet: {
      const int error = set_permissions(call, argument, *set);
      return error != 0 ? Reply::error(error) : Reply::result(0);
    }
    case kStat:
      return store(call, argument,
                   GuestSemaphoreSet{permissions_of(*set), set->used_at, set->changed_at,
                                     list.size(), {}});
    case kGetAll:
    case kSetAll: {
      std::vector<uint16_t> values(list.size());
      const std::span<uint8_t> bytes{reinterpret_cast<uint8_t*>(values.data()), values.size() * 2};
      if (command == kGetAll) {
        for (size_t i = 0; i < list.size(); ++i) values[i] = list[i].value;
        return call.memory.write(argument, bytes) ? Reply::result(0) : Reply::error(EFAULT);
      }
      if (!call.memory.read(argument, bytes)) return Reply::error(EFAULT);
      for (const uint16_t value : values)
        if (value > kMostValue) return Reply::error(ERANGE);
      for (size_t i = 0; i < list.size(); ++i) list[i] = {values[i], pid_of(call)};
      set->changed_at = now();
      return Reply::result(0);
    }
    case kGetWaiting:
    case kGetWaitingForZero:
      if (!exists) return Reply::error(EINVAL);
      return Reply::result(std::count_if(set->waits.begin(), set->waits.end(), [&](const auto& w) {
        return kernel.is_parked(w.first) && w.second.number == number &&
               w.second.for_zero == (command == kGetWaitingForZero);
      }));
    case kGetPid:
      return exists ? Reply::result(list[number].last_pid) : Reply::error(EINVAL);
    case kGetValue:
      return exists ? Reply::result(list[number].value) : Reply::error(EINVAL);
    case kSetValue: {
      if (!exists) return Reply::error(EINVAL);
      const auto value = static_cast<int32_t>(argument);
      if (value < 0 || value > kMostValue) return Reply::error(ERANGE);
      list[number] = {static_cast<uint16_t>(value), pid_of(call)};
      set->changed_at = now();
      return Reply::result(0);
    }
    default:
      return Reply::error(EINVAL);
  }
}

Reply sys_msgget(Kernel&, Call& call) {
  return get(
      call.process->ipc.queues, call.int_arg(0), call.int_arg(1),
      [](const MessageQueue&) { return true; }, [](MessageQueue&) { return 0; });
}

Reply sys_msgsnd(Kernel& kernel, Call& call) {
  const auto [id, address, size, flags, rest4, rest5] = call.args;
  MessageQueue::Message message;
  if (size > kMostMessage) return Reply::error(EINVAL);
  message.bytes.resize(size);
  if (!call.memory.load(address, &message.type) ||
      !call.memory.read(address + sizeof message.type, message.bytes))
    return Reply::error(EFAULT);
  if (message.type < 1) return Reply::error(EINVAL);
  MessageQueue* queue = call.process->ipc.queues.find(call.int_arg(0));
  if (!queue) return Reply::error(gone(kernel, call));
  if (queue->bytes + size > queue->most_bytes || queue->messages.size() >= queue->most_bytes) {
    if (flags & kNoWait) return Reply::error(EAGAIN);
    return kernel.park_for_retry(call, {});
  }
  queue->bytes += size;
  queue->messages.push_back(std::move(message));
  queue->sent_at = now();
  queue->sender = pid_of(call);
  return Reply::result(0);
}

Reply sys_msgrcv(Kernel& kernel, Call& call) {
  const auto [id, address, size, type, flags, rest5] = call.args;
  if (size > INT64_MAX || (flags & ~uint64_t{kNoWait | kTruncate | kExcept} & 070000))
    return Reply::error(EINVAL);
  MessageQueue* queue = call.process->ipc.queues.find(call.int_arg(0));
  if (!queue) return Reply::error(gone(kernel, call));
  const auto found = choose(*queue, static_cast<int64_t>(type), (flags & kExcept) != 0);
  if (found == queue->messages.end()) {
    if (flags & kNoWait) return Reply::error(ENOMSG);
    return kernel.park_for_retry(call, {});
  }
  if (found->bytes.size() > size && !(flags & kTruncate)) return Reply::error(E2BIG);
  const uint64_t count = std::min<uint64_t>(found->bytes.size(), size);
  if (!call.memory.store(address, found->type) ||
      !call.memory.write(address + sizeof found->type, {found->bytes.data(), count}))
    return Reply::error(EFAULT);
  queue->bytes -= found->bytes.size();
  queue->messages.erase(found);
  queue->received_at = now();
  queue->receiver = pid_of(call);
  return Reply::result(static_cast<int64_t>(count));
}

Reply sys_msgctl(Kernel&, Call& call) {
  MessageQueue* queue = call.process->ipc.queues.find(call.int_arg(0));
  if (!queue) return Reply::error(EINVAL);
  const uint64_t argument = call.args[2];
  switch (call.int_arg(1) & ~kOldForm) {
    case kRemove:
      call.process->ipc.queues.remove(call.int_arg(0));
      return Reply::result(0);
    case kSet: {
      GuestQueue wish;
      if (!call.memory.load(argument, &wish)) return Reply::error(EFAULT);
      if (wish.most_bytes > MessageQueue{}.most_bytes) return Reply::error(EPERM);
      queue->most_bytes = wish.most_bytes;
      const int error = set_permissions(call, argument, *queue);
      return error != 0 ? Reply::error(error) : Reply::result(0);
    }
    case kStat:
      return store(call, argument,
                   GuestQueue{permissions_of(*queue), queue->sent_at, queue->received_at,
                              queue->changed_at, queue->bytes, queue->messages.size(),
                              queue->most_bytes, queue->sender, queue->receiver, {}});
    default:
      return Reply::error(EINVAL);
  }
}

Reply sys_shmget(Kernel& kernel, Call& call) {
  const uint64_t size = call.args[1];
  if (!kernel.shared_mappings().are_possible()) {
    kernel.note_once("shmget",
                     "System V shared memory needs --memory shared and a backend that works in the "
                     "host's memory (ENOSYS)");
    return Reply::error(ENOSYS);
  }
  return get(
      call.process->ipc.segments, call.int_arg(0), call.int_arg(2),
      [&](const SharedSegment& s) { return size <= s.size_bytes; },
      [&](SharedSegment& s) {
        if (size == 0 || size > kernel.plan().config.linear_size) return EINVAL;
        const int fd = ::memfd_create("shm", MFD_CLOEXEC);
        if (fd < 0) return errno;
        s.memory = std::make_shared<OpenFile>(fd, /*owned=*/true, OpenFile::Kind::kMemory);
        s.size_bytes = size;
        s.creator = pid_of(call);
        return ::ftruncate(fd, static_cast<off_t>(page_up(size))) < 0 ? errno : 0;
      });
}

Reply sys_shmat(Kernel& kernel, Call& call) {
  SystemVIpc& ipc = call.process->ipc;
  SharedSegment* segment = ipc.segments.find(call.int_arg(0));
  if (!segment) return Reply::error(EINVAL);
  const int64_t flags = call.int_arg(2);
  const uint64_t size = page_up(segment->size_bytes);
  const uint64_t wish = flags & kRound ? page_down(call.args[1]) : call.args[1];
  AddressSpace& space = call.process->memory;
  uint64_t address = wish;
  if (wish == 0) {
    if (flags & kRemap) return Reply::error(EINVAL);
    const auto place = space.place(size);
    if (!place) return Reply::error(ENOMEM);
    address = *place;
  } else {
    if (wish != page_down(wish) || !space.can_place_at(wish, size)) return Reply::error(EINVAL);
    if (!(flags & kRemap) && !space.is_free(wish, size)) return Reply::error(EINVAL);
    for (const AddressRange& old : space.place_at(wish, size)) unmap_pages(kernel, call.core, old);
  }
  const bool to_write = !(flags & kReadOnly);
  if (const int error = kernel.shared_mappings().map(address, size, segment->memory, 0, to_write)) {
    space.remove(address, size);
    return Reply::error(error);
  }
  map_pages(kernel, call.core, {address, address + size},
            static_cast<uint8_t>(kRead | (to_write ? kWrite : 0)));
  if (const auto old = ipc.attachments.find(address); old != ipc.attachments.end()) {
    // Its pages were unmapped or replaced without shmdt.
    SharedSegment& before = *ipc.segments.find(old->second);
    if (--before.attached == 0 && before.is_removed && &before != segment)
      ipc.segments.remove(old->second);
  }
  ipc.attachments[address] = call.int_arg(0);
  ++segment->attached;
  segment->attached_at = now();
  segment->last_pid = pid_of(call);
  return Reply::result(static_cast<int64_t>(address));
}

Reply sys_shmdt(Kernel& kernel, Call& call) {
  const auto attachment = call.process->ipc.attachments.find(call.args[0]);
  if (attachment == call.process->ipc.attachments.end()) return Reply::error(EINVAL);
  detach(kernel, call, attachment);
  return Reply::result(0);
}

Reply sys_shmctl(Kernel&, Call& call) {
  constexpr int64_t kLock = 11, kUnlock = 12;
  SystemVIpc& ipc = call.process->ipc;
  SharedSegment* segment = ipc.segments.find(call.int_arg(0));
  if (!segment) return Reply::error(EINVAL);
  constexpr uint32_t kRemovedMode = 01000;  // SHM_DEST
  switch (call.int_arg(1) & ~kOldForm) {
    case kRemove:
      segment->is_removed = true;
      segment->key = 0;
      if (segment->attached == 0) ipc.segments.remove(call.int_arg(0));
      return Reply::result(0);
    case kSet: {
      const int error = set_permissions(call, call.args[2], *segment);
      return error != 0 ? Reply::error(error) : Reply::result(0);
    }
    case kStat: {
      GuestSegment stat{permissions_of(*segment), segment->size_bytes, segment->attached_at,
                        segment->detached_at, segment->changed_at, segment->creator,
                        segment->last_pid, segment->attached, {}};
      if (segment->is_removed) stat.permissions.mode |= kRemovedMode;
      return store(call, call.args[2], stat);
    }
    case kLock:
    case kUnlock:
      return Reply::result(0);
    default:
      return Reply::error(EINVAL);
  }
}

}  // namespace gpusim::host
