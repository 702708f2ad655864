#include "host/linux/family.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
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

Family::Family(int table_fd, Table* table, uint32_t entry) : table_fd_(table_fd), table_(table) {
  processes_.lives = [this](uint32_t other) { return lives(other); };
  processes_.tell = [this](uint32_t other) {
    table_->entries[other].has_woken_waiters = 1;
    ring(table_->entries[other]);
  };
  become(entry, /*is_new=*/false);
}

std::unique_ptr<Family> Family::begin(int32_t first_pid, int32_t stride) {
  const int fd = ::memfd_create("gpusim-processes", MFD_CLOEXEC);
  if (fd < 0 || ::ftruncate(fd, sizeof(Table)) < 0) {
    if (fd >= 0) ::close(fd);
    return nullptr;
  }
  auto family = take_over(fd, 0);
  if (!family) return nullptr;
  Table& table = *family->table_;
  if (!table.futexes.begin()) return nullptr;
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
  return std::unique_ptr<Family>(new Family(table_fd, static_cast<Table*>(memory), entry));
}

Family::~Family() {
  ::munmap(table_, sizeof(Table));
  ::close(table_fd_);
}

std::span<Family::Entry> Family::entries() const { return {table_->entries, table_->used}; }
Family::Entry& Family::own() const { return table_->entries[entry_]; }
FutexTable& Family::futex_table() const { return table_->futexes; }

// A lock on the byte of the table's file that has the entry's number tells others that the process
// is alive: the host takes it back however the process ends, and keeps it over execve.
static struct flock mark_of_life(uint32_t entry) {
  return {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = entry, .l_len = 1, .l_pid = 0};
}

// From now on this process has that entry. `is_new`: the one that had it before is about to exit;
// else it is this one, or one that stays as long (Successor) and marks both as alive.
void Family::become(uint32_t entry, bool is_new) {
  entry_ = entry;
  processes_.own = entry;
  struct flock mark = mark_of_life(entry);
  while (::fcntl(table_fd_, is_new ? F_SETLKW : F_SETLK, &mark) < 0 && errno == EINTR) {
  }
  own().host = ::getpid();  // not the predecessor's, if that one stays (Successor)
}

bool Family::lives(uint32_t entry) const {
  struct flock mark = mark_of_life(entry);
  return entry == entry_ || ::fcntl(table_fd_, F_GETLK, &mark) < 0 || mark.l_type != F_UNLCK;
}

void Family::ring(Entry& e) {
  e.bell.fetch_add(1);
  ::syscall(SYS_futex, &e.bell, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

void Family::listen() { bell_heard_ = own().bell; }

void Family::nap(std::chrono::steady_clock::time_point until) const {
  using std::chrono::nanoseconds;
  const nanoseconds left = until - std::chrono::steady_clock::now();
  if (left <= nanoseconds{}) return;
  constexpr int64_t kSecond = 1'000'000'000;
  const timespec limit{left.count() / kSecond, left.count() % kSecond};
  ::syscall(SYS_futex, &own().bell, FUTEX_WAIT, bell_heard_, &limit, nullptr, 0);
}

void Family::set_waits_for_others(bool waits) {
  if (!waits && !waits_for_others_) return;
  waits_for_others_ = waits;
  own().waits_for_others = waits ? uint64_t{bell_heard_} + 1 : 0;
}

// What lets a process go on rings its bell first, and is done by one that does not wait. So if all
// wait, and at a second look do with the same bells, all did at once.
bool Family::all_wait_for_others() const {
  std::vector<uint64_t> marks;
  for (const bool is_first_look : {true, false}) {
    size_t i = 0;
    for (const Entry& e : entries()) {
      if (e.state == Entry::kFree) continue;
      // One that ends tells its parent first, which notices a process that was killed.
      const bool is_running = lives(static_cast<uint32_t>(&e - table_->entries));
      if (is_running != e.is_there() && (is_running || e.parent != 1)) return false;
      if (!is_running) continue;
      const uint64_t mark = e.waits_for_others;
      if (e.is_stopped() || mark != uint64_t{e.bell} + 1) return false;
      if (is_first_look)
        marks.push_back(mark);
      else if (i >= marks.size() || marks[i++] != mark)
        return false;
    }
  }
  return true;
}

bool Family::take_has_woken_waiters() {
  Entry& me = own();
  return me.has_woken_waiters.load(std::memory_order_relaxed) != 0 &&
         me.has_woken_waiters.exchange(0) != 0;
}
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
  child.bell = child.has_woken_waiters = 0;
  child.waits_for_others = 0;
  child.usage = child.children = Usage{};
  child.host = 0;
  futexes().forget(*place);  // its predecessor may have been killed
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
  become(*place, /*is_new=*/true);
  ended_seen_ = changed_seen_ = bell_heard_ = 0;
  kills_.clear();
  waits_for_others_ = false;
  has_forked_ = is_first_ = had_others_ = false;
  child.state = Entry::kAlive;
  return 0;
}

bool Family::has_let_go(int32_t child) const {
  const Entry* const e = find(child);
  return !e || e->has_let_go != 0 || !e->is_there();
}
void Family::let_go() {
  set_waits_for_others(false);
  forget_locks();  // a program that is executed begins without them
  own().has_let_go = 1;
  if (Entry* const parent = find(own().parent)) ring(*parent);
}

void Family::end(int32_t status, const Usage& usage) {
  see_to_kills(std::chrono::milliseconds{0});
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
  ring(*parent);
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
