// Signals between the processes of a run; groups, sessions, and processes that are stopped.
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>

#include "host/linux/family_table.h"
#include "host/linux/signals.h"

namespace gpusim::host {

int Family::send(int64_t to, int32_t signal) {
  constexpr int64_t kAll = -1;
  int count = 0;
  for (Entry& e : entries()) {
    if (&e == &own() || e.state == Entry::kFree) continue;
    if (to > 0 ? e.pid != to : to != kAll && e.group != -to) continue;
    ++count;
    if (!e.is_there() || signal == 0) continue;
    if (signal == SIGKILL) {
      e.signals.fetch_or(signal_bit(signal));
      ring(e);
      kills_.push_back({.pid = e.pid, .since = std::chrono::steady_clock::now()});
      continue;
    }
    // Signals that stop, and the one that lets go on, take each other back.
    if (signal_bit(signal) & kStopping) e.signals.fetch_and(~signal_bit(SIGCONT));
    if (signal == SIGSTOP) {
      mark_stopped(e, signal);
      continue;
    }
    if (signal == SIGCONT) e.signals.fetch_and(~kStopping);
    e.sender = pid();
    e.signals.fetch_or(signal_bit(signal));
    if (signal == SIGCONT) mark_going_on(e);  // last: it takes its signals before it goes on
    ring(e);
  }
  return count == 0 ? -1 : count;
}

uint64_t Family::take_signals() {
  Entry& me = own();
  return me.signals.load(std::memory_order_relaxed) == 0 ? 0 : me.signals.exchange(0);
}
int32_t Family::last_sender() const { return own().sender; }

// The process ends itself, so that what it leaves to others is in order. But it may be held up on
// the host, by a pipe that nobody reads, say.
void Family::see_to_kills(std::chrono::milliseconds patience) {
  const auto now = std::chrono::steady_clock::now();
  std::erase_if(kills_, [&](const Kill& kill) {
    const Entry* const e = find(kill.pid);
    if (!e || !e->is_there()) return true;
    if (now - kill.since < patience) return false;
    if (const pid_t host = e->host; host != 0) ::kill(host, SIGKILL);
    return true;
  });
}

// --- stops

void Family::mark_stopped(Entry& e, int32_t signal) {
  uint32_t old = e.stop;
  do
    if (old & Entry::kStopSignal) return;
  while (!e.stop.compare_exchange_weak(old, static_cast<uint32_t>(signal) | Entry::kStopIsNews));
  tell_parent(e, signal << 8 | 0x7f, /*has_ended=*/false);
}

void Family::mark_going_on(Entry& e) {
  uint32_t old = e.stop;
  do
    if (!(old & Entry::kStopSignal)) return;
  while (!e.stop.compare_exchange_weak(old, Entry::kGoingOnIsNews));
  tell_parent(e, 0xffff, /*has_ended=*/false);
}

// Started by something outside, not by a process of the run.
bool Family::is_outermost() const {
  const int32_t parent = own().parent;
  return parent != 1 && !find(parent);
}

bool Family::has_company() {
  bool has = false;
  for (Entry& e : entries()) {
    if (&e == &own()) continue;
    if (is_wanted(e, {})) look_after(e);
    has |= e.is_there();
  }
  return has;
}

// Whether e's parent could let this group go on: as it is of another one in the same session.
bool Family::links_group(const Entry& e, int32_t group) const {
  if (!e.is_there() || e.group != group) return false;
  const Entry* const parent = find(e.parent);
  return parent && parent->is_there() && parent->group != group && parent->session == e.session;
}

bool Family::is_orphaned(int32_t group) const {
  for (const Entry& e : entries())
    if (links_group(e, group)) return false;
  return true;
}

// POSIX, _exit(): of a group that has just become an orphan and has a process that is stopped, all
// get SIGHUP and go on.
void Family::hang_up_if_orphaned(int32_t group) {
  if (!is_orphaned(group)) return;
  bool has_stopped = false;
  for (const Entry& e : entries())
    has_stopped |= e.is_there() && e.group == group && e.is_stopped();
  if (!has_stopped) return;
  send(-group, SIGHUP);
  send(-group, SIGCONT);
}

void Family::stop(int32_t signal) {
  // The host knows whether its shell could let this one go on.
  if (is_outermost() && !has_company()) {
    ::kill(::getpid(), signal);
    return;
  }
  if (signal != SIGSTOP && is_orphaned(own().group)) return;
  mark_stopped(own(), signal);
}

bool Family::is_stopped() {
  Entry& me = own();
  if (!me.is_stopped() || (me.signals & signal_bit(SIGKILL))) return false;
  if (is_outermost() && !has_company()) {
    ::kill(::getpid(), SIGSTOP);
    mark_going_on(me);
  } else if (const Entry* const parent = find(me.parent);
             parent && parent->is_there() && parent->host != 0 && ::kill(parent->host, 0) < 0) {
    // Killed from outside: it could not hang this one up.
    me.signals.fetch_or(signal_bit(SIGHUP));
    mark_going_on(me);
  }
  return me.is_stopped();
}

// --- groups and sessions

int64_t Family::group_of(int64_t pid) const {
  const Entry* const e = pid == 0 ? &own() : find(pid);
  return e ? e->group.load() : -ESRCH;
}
int64_t Family::session_of(int64_t pid) const {
  const Entry* const e = pid == 0 ? &own() : find(pid);
  return e ? e->session.load() : -ESRCH;
}

int64_t Family::set_group(int64_t pid, int64_t group) {
  if (group < 0) return -EINVAL;
  Entry* const e = pid == 0 ? &own() : find(pid);
  if (!e || (e != &own() && e->parent != own().pid)) return -ESRCH;
  if (e != &own() && e->session != own().session) return -EPERM;
  if (e != &own() && e->has_let_go != 0) return -EACCES;  // it has executed a program
  if (e->session == e->pid) return -EPERM;
  if (group == 0) group = e->pid;
  bool is_known = group == e->pid;
  for (const Entry& other : entries())
    is_known |=
        other.state != Entry::kFree && other.group == group && other.session == own().session;
  if (!is_known) return -EPERM;
  e->group = static_cast<int32_t>(group);
  return 0;
}

int64_t Family::start_session() {
  Entry& me = own();
  if (me.group == me.pid) return -EPERM;
  me.group = me.session = me.pid.load();
  return me.pid;
}

}  // namespace gpusim::host
