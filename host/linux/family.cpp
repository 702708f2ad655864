#include "host/linux/family.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <new>
#include <utility>

namespace gpusim::host {
namespace {

constexpr uint32_t kMost = 4096;  // processes at a time
enum State : uint32_t { kFree, kBegins, kAlive, kEnded };

}  // namespace

// Written by several processes.
struct Family::Entry {
  std::atomic<uint32_t> state;
  std::atomic<int32_t> host;  // its number there
  std::atomic<int32_t> pid, parent, group, session, status, sender;
  std::atomic<uint32_t> has_let_go, children_ended;
  std::atomic<uint64_t> signals;

  bool is_there() const { return state == kBegins || state == kAlive; }
};
struct Family::Table {
  std::atomic<int32_t> next_pid, stride;
  Entry entries[kMost];
};

static_assert(std::atomic<uint64_t>::is_always_lock_free &&
                  std::atomic<int32_t>::is_always_lock_free,
              "processes share them");

std::unique_ptr<Family> Family::begin(int32_t first_pid, int32_t stride) {
  const int fd = ::memfd_create("gpusim-processes", MFD_CLOEXEC);
  if (fd < 0 || ::ftruncate(fd, sizeof(Table)) < 0) {
    if (fd >= 0) ::close(fd);
    return nullptr;
  }
  auto family = take_over(fd, 0);
  if (!family) return nullptr;
  Table& table = *family->table_;
  table.next_pid = first_pid + stride;
  table.stride = stride;
  Entry& own = table.entries[0];
  own.host = ::getpid();
  own.pid = own.group = own.session = first_pid;
  own.parent = first_pid - 1;
  own.state = kAlive;
  family->is_first_ = true;
  family->has_forked_ = false;
  return family;
}

std::unique_ptr<Family> Family::take_over(int table_fd, uint32_t entry) {
  if (entry >= kMost || ::lseek(table_fd, 0, SEEK_END) != static_cast<off_t>(sizeof(Table)))
    return nullptr;
  void* const memory =
      ::mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED, table_fd, 0);
  if (memory == MAP_FAILED) return nullptr;
  return std::unique_ptr<Family>(new Family(table_fd, static_cast<Table*>(memory), entry));
}

Family::~Family() {
  ::munmap(table_, sizeof(Table));
  ::close(table_fd_);
}

Family::Entry& Family::own() const { return table_->entries[entry_]; }
int32_t Family::pid() const { return own().pid; }
int32_t Family::parent() const { return own().parent; }

Family::Entry* Family::find(int64_t pid) const {
  for (Entry& e : table_->entries)
    if (e.state != kFree && e.pid == pid) return &e;
  return nullptr;
}

// One that said that it has ended may still have pipes open.
bool Family::has_others() const {
  if (!is_first_) return true;
  for (const Entry& e : table_->entries) {
    if (&e == &own() || e.state == kFree) continue;
    siginfo_t info{};
    const bool is_child =
        ::waitid(P_PID, static_cast<id_t>(e.host), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
    if (e.is_there() || (is_child ? info.si_pid == 0 : ::kill(e.host, 0) == 0)) return true;
  }
  return false;
}

bool Family::may_have_others() {
  const bool now = has_others();
  return std::exchange(had_others_, now) || now;
}

std::optional<uint32_t> Family::reserve() {
  for (uint32_t i = 0; i < kMost; ++i) {
    uint32_t free = kFree;
    if (table_->entries[i].state.compare_exchange_strong(free, kBegins)) return i;
  }
  return std::nullopt;
}

int32_t Family::fork() {
  const std::optional<uint32_t> place = reserve();
  if (!place) return -EAGAIN;
  Entry& child = table_->entries[*place];
  const Entry& me = own();
  child.pid = table_->next_pid.fetch_add(table_->stride);
  child.parent = me.pid.load();
  child.group = me.group.load();
  child.session = me.session.load();
  child.status = child.sender = 0;
  child.has_let_go = child.children_ended = 0;
  child.signals = 0;
  child.host = 0;
  const pid_t host = ::fork();
  if (host < 0) {
    const int error = errno;
    child.state = kFree;
    return -error;
  }
  if (host > 0) {
    has_forked_ = true;
    child.host = host;
    return child.pid;
  }
  entry_ = *place;
  ended_seen_ = 0;
  has_forked_ = is_first_ = had_others_ = false;
  child.host = ::getpid();
  child.state = kAlive;
  return 0;
}

bool Family::has_let_go(int32_t child) const {
  const Entry* const e = find(child);
  return !e || e->has_let_go != 0 || !e->is_there();
}
void Family::let_go() { own().has_let_go = 1; }

void Family::end(int32_t status) {
  Entry& me = own();
  // Children without a parent are nobody's.
  for (Entry& e : table_->entries) {
    if (e.state == kFree || e.parent != me.pid) continue;
    e.parent = 1;
    if (e.state == kEnded) e.state = kFree;
  }
  me.status = status;
  Entry* const parent = find(me.parent);
  me.state = parent ? kEnded : kFree;
  if (parent) parent->children_ended.fetch_add(1);
}

bool Family::is_wanted(const Entry& e, int64_t which) const {
  if (e.state == kFree || e.parent != own().pid) return false;
  if (which == -1) return true;
  if (which > 0) return e.pid == which;
  return e.group == (which == 0 ? own().group.load() : -which);
}

// A process that something outside has killed says nothing itself.
void Family::look_after(Entry& e) {
  if (!e.is_there() || e.host == 0) return;
  int status = 0;
  const pid_t got = ::waitpid(e.host, &status, WNOHANG);
  if (got == 0) return;
  if (got < 0 && ::kill(e.host, 0) == 0) return;  // another process has started it
  if (!e.is_there()) return;                      // it said so meanwhile
  e.status = got > 0 ? status : SIGKILL;
  e.state = kEnded;
  own().children_ended.fetch_add(1);
}

std::optional<Family::Ended> Family::take_ended(int64_t which, bool stays) {
  bool any = false;
  for (Entry& e : table_->entries) {
    if (!is_wanted(e, which)) continue;
    any = true;
    look_after(e);
    if (e.state != kEnded) continue;
    const Ended ended{e.pid, e.status};
    if (!stays) {
      ::waitpid(e.host, nullptr, 0);  // it is about to exit, or gone
      e.state = kFree;
    }
    return ended;
  }
  return any ? std::optional<Ended>(Ended{}) : std::nullopt;
}

uint32_t Family::count_ended() {
  if (!has_forked_) return 0;
  for (Entry& e : table_->entries)
    if (is_wanted(e, -1)) look_after(e);
  const uint32_t all = own().children_ended, fresh = all - ended_seen_;
  ended_seen_ = all;
  return fresh;
}

int Family::send(int64_t to, int32_t signal) {
  int count = 0;
  for (Entry& e : table_->entries) {
    if (&e == &own() || e.state == kFree) continue;
    if (to > 0 ? e.pid != to : to == -1 ? false : e.group != -to) continue;
    ++count;
    if (!e.is_there() || signal == 0) continue;
    const pid_t host = e.host;
    if (host != 0 && (signal == SIGKILL || signal == SIGSTOP || signal == SIGCONT))
      ::kill(host, signal);
    if (signal == SIGKILL || signal == SIGSTOP) continue;
    e.sender = pid();
    e.signals.fetch_or(uint64_t{1} << (signal - 1));
  }
  return count == 0 ? -1 : count;
}

uint64_t Family::take_signals() {
  Entry& me = own();
  return me.signals.load(std::memory_order_relaxed) == 0 ? 0 : me.signals.exchange(0);
}
int32_t Family::last_sender() const { return own().sender; }

int64_t Family::group_of(int64_t pid) const {
  const Entry* const e = pid == 0 ? &own() : find(pid);
  return e ? e->group.load() : -ESRCH;
}
int64_t Family::session_of(int64_t pid) const {
  const Entry* const e = pid == 0 ? &own() : find(pid);
  return e ? e->session.load() : -ESRCH;
}

int64_t Family::set_group(int64_t pid, int64_t group) {
  Entry* const e = pid == 0 ? &own() : find(pid);
  if (!e || (e != &own() && e->parent != own().pid)) return -ESRCH;
  if (group < 0) return -EINVAL;
  if (e->session == e->pid) return -EPERM;
  e->group = static_cast<int32_t>(group == 0 ? e->pid.load() : group);
  return 0;
}

int64_t Family::start_session() {
  Entry& me = own();
  if (me.group == me.pid) return -EPERM;
  me.group = me.session = me.pid.load();
  return me.pid;
}

}  // namespace gpusim::host
