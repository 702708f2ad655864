#include "host/sweep/tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "device_sim/base/error.h"
#include "device_sim/core/backend_traits.h"
#include "host/output_file.h"
#include "host/sweep/machine.h"
#include "host/sweep/study_folder.h"

namespace gpusim::sweep {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kGroup = 64;  // lanes that backend simd runs on one host thread

// Small machines cannot use many host threads: then several points fit at once.
uint32_t useful_threads(const Study& study, const std::string& backend, uint32_t cores,
                        uint32_t share) {
  const uint32_t most = study.threads ? study.threads : share;
  if (traits_of(backend).is_on_device) return most;
  return std::clamp((cores + kGroup - 1) / kGroup, 1u, most);
}

std::vector<Task> tasks_of(const Study& study, const Json& simulator, uint32_t share) {
  std::vector<Task> tasks;
  for (uint32_t repeat = 1; repeat <= study.repeat; ++repeat)
    for (const std::string& backend : study.backends)
      for (const Case& one : study.cases)
        for (const uint32_t cores : one.cores) {
          Task t;
          t.threads = useful_threads(study, backend, cores, share);
          const bool is_on_device = traits_of(backend).is_on_device;
          t.id = {&one,
                  backend,
                  cores,
                  repeat,
                  is_on_device ? 0 : t.threads,
                  is_on_device ? 0 : study.threads};
          t.identity = identity_json(t.id, simulator);
          t.name = point_name(t.id, t.identity);
          tasks.push_back(std::move(t));
        }
  return tasks;
}

}  // namespace

Tasks::Tasks(const Study& study, const std::string& folder, const Json& simulator, Workers& workers,
             bool retry)
    : folder_(folder),
      workers_(workers),
      claims_(folder + "/claims", workers.id()),
      list_(tasks_of(study, simulator, workers.launch().threads)),
      order_(list_.size()),
      unfinished_(list_.size()) {
  std::iota(order_.begin(), order_.end(), size_t{0});
  const std::string& session = workers.launch().session;
  // Of several processes none shall be left alone with the longest point.
  if (workers.launch().kind != Launch::Kind::kAlone)
    std::ranges::stable_sort(order_, std::greater{},
                             [&](size_t index) { return list_[index].id.cores; });
  note_claims();
  for (Task& task : list_) {
    if (!load(task)) continue;
    const Point& point = *task.done;
    if (!retry || point.ok() || (!session.empty() && point.session == session)) continue;
    task.old_failure = point.started;
    task.finished = point.claim;
    task.done.reset();
    ++unfinished_;
  }
}

bool Tasks::load(Task& task) {
  if (task.done) return true;
  std::optional<Point> point =
      load_point(fmt::format("{}/points/{}.json", folder_, task.name), task.identity);
  if (!point || (!task.old_failure.empty() && point->started == task.old_failure)) return false;
  task.done = std::move(point);
  --unfinished_;
  return true;
}

void Tasks::finish(size_t index, Point point) {
  Task& task = list_[index];
  point.claim = task.last;
  point.session = workers_.launch().session;
  host::write_output_file("-o", fmt::format("{}/points/{}.json", folder_, task.name),
                          json_text(point_json(point, task.identity)));
  task.done = std::move(point);
  --unfinished_;
}

void Tasks::refresh(bool now) {
  if (!now && Clock::now() < next_look_) return;
  next_look_ = Clock::now() + kLook;
  // A list of the folder is true; that a name is not there may be an old answer of NFS.
  std::set<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder_ + "/points", error), end; !error && at != end;
       at.increment(error))
    names.insert(at->path().filename().string());
  for (Task& task : list_)
    if (!task.done && names.contains(task.name + ".json")) load(task);
}

void Tasks::note_claims() {
  const std::map<std::string, uint32_t> last = claims_.last();
  for (Task& task : list_)
    if (const auto at = last.find(task.name); at != last.end())
      task.last = std::max(task.last, at->second);
}

Tasks::State Tasks::state(Task& task) {
  if (task.last <= task.finished) return State::kFree;
  const std::optional<Claims::Holder> holder = claims_.holder(task.name, task.last);
  if (!holder) return State::kUnclear;
  if (holder->gave_back) return State::kFree;
  switch (workers_.life(holder->worker)) {
    case Workers::Life::kAlive:
      return State::kHeld;
    case Workers::Life::kUnknown:
      return State::kUnclear;
    default:
      return State::kFree;
  }
}

// Claims that one machine does not see yet are there for the one that has the files: then this
// fails.
bool Tasks::take(Task& task) {
  // Its last holder may have finished it before it went.
  if (task.last > task.finished && load(task)) return false;
  const uint32_t next = std::max(task.last, task.finished) + 1;
  const bool taken = claims_.take(task.name, next);
  task.last = next;
  // Nor does that say the last word: the file may have come late from another machine.
  if (!taken || load(task)) return false;
  if (const uint32_t lost = claims_.lost(task.name, task.finished + 1, next - 1);
      lost >= kMostLost) {
    fail_poison(task, lost);
    return false;
  }
  return true;
}

void Tasks::fail_poison(Task& task, uint32_t lost) {
  Point point;
  point.label = task.id.one->label;
  point.backend_asked = task.id.backend;
  point.cores = task.id.cores;
  point.repeat = task.id.repeat;
  point.threads = task.id.threads;
  point.command = point_command(task.id, "stats.json");
  point.started = utc_now();
  point.machine = machine_json();
  point.exit_status = 1;
  point.message = fmt::format(
      "{} processes ended while they ran this point; too little memory or time for it?", lost);
  finish(static_cast<size_t>(&task - list_.data()), std::move(point));
}

bool Tasks::all_are_in_hands() {
  note_claims();
  return std::ranges::all_of(list_,
                             [&](Task& task) { return task.done || state(task) == State::kHeld; });
}

bool Tasks::takes_report() try {
  const std::string& session = workers_.launch().session;
  if (workers_.opener_works()) return false;
  if (session.empty()) return true;
  const std::string name = "report-" + session;
  for (uint32_t generation = 1;; ++generation) {
    if (claims_.take(name, generation)) return true;
    const std::optional<Claims::Holder> holder = claims_.holder(name, generation);
    if (!holder || workers_.life(holder->worker) != Workers::Life::kDead) return false;
  }
} catch (const Error&) {
  // Whoever led the study has written results meanwhile, and cleared up.
  if (fs::exists(folder_ + "/claims")) throw;
  return false;
}

}  // namespace gpusim::sweep
