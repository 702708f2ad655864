#include "host/linux/family.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <set>
#include <utility>

#include "host/linux/family_table.h"

namespace gpusim::host {

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
  table.used = 1;
  Entry& own = table.entries[0];
  own.pid = own.group = first_pid;
  own.parent = own.session = first_pid - 1;  // as a shell starts it
  own.state = Entry::kAlive;
  family->is_first_ = true;
  family->has_forked_ = false;
  return family;
}

std::unique_ptr<Family> Family::take_over(int table_fd, uint32_t entry) {
  if (entry >= Table::kMost || ::lseek(table_fd, 0, SEEK_END) != static_cast<off_t>(sizeof(Table)))
    return nullptr;
  void* const memory =
      ::mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED, table_fd, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto family = std::unique_ptr<Family>(new Family(table_fd, static_cast<Table*>(memory), entry));
  family->own().host = ::getpid();  // not the predecessor's, if that one stays (Successor)
  return family;
}

Family::~Family() {
  ::munmap(table_, sizeof(Table));
  ::close(table_fd_);
}

std::span<Family::Entry> Family::entries() const { return {table_->entries, table_->used}; }
Family::Entry& Family::own() const { return table_->entries[entry_]; }
int32_t Family::pid() const { return own().pid; }
int32_t Family::parent() const { return own().parent; }

Family::Entry* Family::find(int64_t pid) const {
  for (Entry& e : entries())
    if (e.state != Entry::kFree && e.pid == pid) return &e;
  return nullptr;
}

// One that said that it has ended may still have pipes open.
bool Family::has_others() const {
  if (!is_first_) return true;
  for (const Entry& e : entries()) {
    if (&e == &own() || e.state == Entry::kFree) continue;
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
  for (uint32_t i = 0; i < Table::kMost; ++i) {
    uint32_t free = Entry::kFree;
    if (!table_->entries[i].state.compare_exchange_strong(free, Entry::kBegins)) continue;
    uint32_t used = table_->used;
    while (used <= i && !table_->used.compare_exchange_weak(used, i + 1)) {
    }
    return i;
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
  child.has_let_go = child.stop = child.children_ended = child.children_changed = 0;
  child.signals = child.last_child = 0;
  child.usage = child.children = Usage{};
  child.host = 0;
  const pid_t host = ::fork();
  if (host < 0) {
    const int error = errno;
    child.state = Entry::kFree;
    return -error;
  }
  if (host > 0) {
    has_forked_ = true;
    child.host = host;
    return child.pid;
  }
  entry_ = *place;
  ended_seen_ = changed_seen_ = 0;
  has_forked_ = is_first_ = had_others_ = false;
  child.host = ::getpid();
  child.state = Entry::kAlive;
  return 0;
}

bool Family::has_let_go(int32_t child) const {
  const Entry* const e = find(child);
  return !e || e->has_let_go != 0 || !e->is_there();
}
void Family::let_go() { own().has_let_go = 1; }

void Family::end(int32_t status, const Usage& usage) {
  Entry& me = own();
  Entry* const parent = find(me.parent);
  // Groups whose tie to the rest of their session this process was.
  std::set<int32_t> groups;
  if (links_group(me, me.group)) groups.insert(me.group);
  // Children without a parent are nobody's.
  for (Entry& e : entries()) {
    if (e.state == Entry::kFree || e.parent != me.pid) continue;
    if (links_group(e, e.group)) groups.insert(e.group);
    e.parent = 1;
    if (e.state == Entry::kEnded) e.state = Entry::kFree;
  }
  me.status = status;
  me.usage = usage;
  me.usage += me.children;
  me.state = parent ? Entry::kEnded : Entry::kFree;
  if (parent) tell_parent(me, status, /*has_ended=*/true);
  for (const int32_t group : groups) hang_up_if_orphaned(group);
}

// --- children

void Family::tell_parent(const Entry& e, int32_t status, bool has_ended) {
  Entry* const parent = find(e.parent);
  if (!parent) return;
  parent->last_child = uint64_t{static_cast<uint32_t>(e.pid)} << 32 | static_cast<uint32_t>(status);
  (has_ended ? parent->children_ended : parent->children_changed).fetch_add(1);
}

bool Family::is_wanted(const Entry& e, const Which& which) const {
  if (e.state == Entry::kFree || e.parent != own().pid) return false;
  switch (which.kind) {
    case Which::Kind::kAny:
      return true;
    case Which::Kind::kProcess:
      return e.pid == which.id;
    case Which::Kind::kGroup:
      return e.group == (which.id == 0 ? own().group.load() : which.id);
  }
  return false;
}

// A process that something outside has killed says nothing itself.
void Family::look_after(Entry& e) {
  if (!e.is_there() || e.host == 0) return;
  int status = 0;
  rusage used{};
  const pid_t got = ::wait4(e.host, &status, WNOHANG, &used);
  if (got == 0) return;
  if (got < 0 && ::kill(e.host, 0) == 0) return;  // another process has started it
  if (!e.is_there()) return;                      // it said so meanwhile
  e.status = got > 0 ? status : SIGKILL;
  e.usage = usage_of(used);
  e.state = Entry::kEnded;
  tell_parent(e, e.status, /*has_ended=*/true);
}

std::optional<Family::News> Family::take_news(const Which& which, int changes, bool stays) {
  bool any = false;
  Entry* oldest = nullptr;
  for (Entry& e : entries()) {
    if (!is_wanted(e, which)) continue;
    look_after(e);
    const bool has_ended = e.state == Entry::kEnded;
    if (has_ended && !(changes & WEXITED)) continue;
    any = true;
    const uint32_t stop = e.stop;
    const bool has_news = has_ended || (changes & WSTOPPED && stop & Entry::kStopIsNews) ||
                          (changes & WCONTINUED && stop & Entry::kGoingOnIsNews);
    if (has_news && (!oldest || e.pid < oldest->pid)) oldest = &e;
  }
  if (!oldest) return any ? std::optional<News>(News{}) : std::nullopt;
  Entry& e = *oldest;
  if (e.state == Entry::kEnded) {
    const News news{.pid = e.pid, .status = e.status, .usage = e.usage};
    if (!stays) {
      ::waitpid(e.host, nullptr, 0);  // it is about to exit, or gone
      own().children += e.usage;
      e.state = Entry::kFree;
    }
    return news;
  }
  constexpr uint32_t kNews = Entry::kStopIsNews | Entry::kGoingOnIsNews;
  const uint32_t stop = stays ? e.stop.load() : e.stop.fetch_and(~kNews);
  constexpr int32_t kStopped = 0x7f, kGoesOn = 0xffff;
  const int32_t signal = static_cast<int32_t>(stop & Entry::kStopSignal);
  return News{.pid = e.pid, .status = signal != 0 ? signal << 8 | kStopped : kGoesOn, .usage = {}};
}

void Family::forget_ended() {
  while (true) {
    const auto news = take_news({}, WEXITED, /*stays=*/false);
    if (!news || news->pid == 0) return;
  }
}

Family::Changes Family::count_changes() {
  if (!has_forked_) return {};
  for (Entry& e : entries())
    if (is_wanted(e, {})) look_after(e);
  const uint32_t ended = own().children_ended, changed = own().children_changed;
  return {.ended = ended - std::exchange(ended_seen_, ended),
          .others = changed - std::exchange(changed_seen_, changed)};
}

Family::News Family::last_change() const {
  const uint64_t last = own().last_child;
  return {
      .pid = static_cast<int32_t>(last >> 32), .status = static_cast<int32_t>(last), .usage = {}};
}

const Usage& Family::usage_of_children() const { return own().children; }

SignalInfo child_signal(const Family::News& news) {
  const int status = news.status;
  SignalInfo info{.number = SIGCHLD, .pid = news.pid, .uid = ::getuid()};
  const auto set = [&](int32_t code, int detail) {
    info.code = code;
    info.value = static_cast<uint32_t>(detail);
  };
  if (WIFEXITED(status))
    set(CLD_EXITED, WEXITSTATUS(status));
  else if (WIFSTOPPED(status))
    set(CLD_STOPPED, WSTOPSIG(status));
  else if (WIFCONTINUED(status))
    set(CLD_CONTINUED, SIGCONT);
  else
    set(WCOREDUMP(status) ? CLD_DUMPED : CLD_KILLED, WTERMSIG(status));
  return info;
}

}  // namespace gpusim::host
