#include "host/sweep/runner.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <thread>

#include "device_sim/base/error.h"
#include "device_sim/core/backend.h"
#include "device_sim/core/devices.h"
#include "host/backend_choice.h"
#include "host/processor.h"
#include "host/sweep/child.h"
#include "host/sweep/interrupt.h"
#include "host/sweep/machine.h"
#include "host/sweep/slurm_job.h"
#include "host/sweep/study_progress.h"
#include "host/sweep/tasks.h"

namespace gpusim::sweep {
namespace {

namespace fs = std::filesystem;

std::string last_line(const std::string& text, const std::string& otherwise) {
  size_t end = text.find_last_not_of("\r\n ");
  if (end == std::string::npos) return otherwise;
  // A fault's report says more than what follows it: its first line, and the place in the second.
  const auto line_with = [&](const char* start) {
    const size_t at = ("\n" + text).find(std::string("\n") + start);
    return at == std::string::npos ? text.size() : at;
  };
  const size_t error = line_with("gpusim: error: ");
  const size_t report = std::min(line_with("core "), line_with("cores "));
  const size_t begin = error != text.size()    ? error
                       : report != text.size() ? report
                                               : text.rfind('\n', end) + 1;
  const size_t stop = std::min(text.find('\n', begin), end + 1);
  std::string line = text.substr(begin, stop - begin);
  if (text.compare(stop, 6, "\n  in ") == 0)
    line += "," + text.substr(stop + 2, std::min(text.find('\n', stop + 1), end + 1) - stop - 2);
  return line.substr(0, 400);
}

// GPUs of this machine, each of which has one point at a time of those whose backend takes one.
class DeviceShares {
 public:
  DeviceShares(const Study& study, const std::string& devices) {
    if (devices.empty()) return;
    for (const Case& c : study.cases)
      for (const std::string& option : c.options)
        if (option.starts_with("--device"))
          throw Error(fmt::format(
              "--devices {}: {} names a GPU for its points itself, by {}: one of the two", devices,
              c.label, option));
    if (std::ranges::find(study.backends, backend_) == study.backends.end())
      throw Error(
          fmt::format("--devices {}: no point of the study has backend {}", devices, backend_));
    free_ = host::parse_devices(devices);
    std::ranges::reverse(free_);
    count_ = static_cast<uint32_t>(free_.size());
  }
  uint32_t count() const { return count_; }
  bool concerns(const PointId& id) const { return count_ != 0 && id.backend == backend_; }
  bool has_room(const PointId& id) const { return !concerns(id) || !free_.empty(); }
  std::optional<uint32_t> take(const PointId& id) {
    if (!concerns(id)) return {};
    const uint32_t device = free_.back();
    free_.pop_back();
    return device;
  }
  void give_back(std::optional<uint32_t> device) {
    if (device) free_.push_back(*device);
  }

 private:
  const std::string backend_ = backend_with_devices().name;
  uint32_t count_ = 0;
  std::vector<uint32_t> free_;  // the next one last
};

class Runner {
 public:
  Runner(const Study& study, const std::string& folder, Tasks& tasks, Workers& workers,
         const RunnerOptions& options)
      : study_(study),
        devices_(study, options.devices),
        tasks_(tasks),
        workers_(workers),
        running_folder_(folder + "/running/" + workers.id()),
        progress_(!options.quiet) {}
  // What was begun is free for others.
  ~Runner() {
    std::error_code ignored;
    for (Running& r : running_) try {
        r.child->kill();
        tasks_.give_back(tasks_.list()[r.task]);
      } catch (const Error&) {
        continue;  // they will notice that this process is gone
      }
    running_.clear();
    fs::remove_all(running_folder_, ignored);
    fs::remove(fs::path(running_folder_).parent_path(), ignored);  // if it is empty
  }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // Until nothing is left to do; `waits`: until all is done that others do, too. Returns whether it
  // got there.
  bool run(bool waits, StudyRun& result) {
    const uint32_t most_threads = workers_.launch().threads;
    const uint32_t most_jobs = study_.jobs ? study_.jobs : most_threads + devices_.count();
    // A point with a GPU of its own takes none of the host's threads from others.
    const auto threads_of = [&](const Task& t) { return devices_.concerns(t.id) ? 0 : t.threads; };
    for (const Task& t : tasks_.list())
      if (t.done) progress_.add_known(t.id, t.done->wall_seconds);
    while (true) {
      workers_.beat();
      uint32_t busy = 0;
      for (const Running& r : running_) busy += threads_of(tasks_.list()[r.task]);
      // --jobs is the user's word; otherwise points share the host's threads without crowding.
      while (running_.size() < most_jobs && !is_interrupted()) {
        const std::optional<size_t> next = tasks_.take([&](const Task& t) {
          return devices_.has_room(t.id) &&
                 (running_.empty() || study_.jobs || busy + threads_of(t) <= most_threads);
        });
        if (!next) break;
        busy += threads_of(tasks_.list()[*next]);
        start(*next);
      }
      if (is_interrupted()) return false;
      if (running_.empty()) {
        tasks_.refresh(true);
        if (tasks_.unfinished() == 0 || (!waits && tasks_.all_are_in_hands())) return true;
        // A thousand that wait shall not keep a file system busy.
        std::this_thread::sleep_for(wait_for_others_);
        wait_for_others_ = std::min(2 * wait_for_others_, kLongestWait);
      } else {
        wait_for_others_ = kWait;
        wait();
        for (size_t i = 0; i < running_.size();) {
          if (!finish(running_[i], result)) {
            ++i;
            continue;
          }
          devices_.give_back(running_[i].device);
          running_.erase(running_.begin() + static_cast<ptrdiff_t>(i));
        }
      }
      show();
    }
  }
  StudyProgress& progress() { return progress_; }

 private:
  static constexpr std::chrono::milliseconds kWait{100}, kLongestWait{2000};
  struct Running {
    size_t task = 0;
    Point point;
    std::unique_ptr<Child> child;
    std::string stats;
    bool timed_out = false;
    std::optional<uint32_t> device = {};
  };

  void start(size_t index) {
    const Task& t = tasks_.list()[index];
    Running r;
    r.task = index;
    fs::create_directories(running_folder_);
    r.stats = running_folder_ + "/" + t.name + ".json";
    r.point.label = t.id.one->label;
    r.point.backend_asked = t.id.backend;
    r.point.cores = t.id.cores;
    r.point.repeat = t.id.repeat;
    r.point.threads = t.id.threads;
    r.point.command = point_command(t.id, "stats.json");
    r.point.started = utc_now();
    r.point.machine = machine_;
    r.point.load = load_average();
    r.point.others = static_cast<uint32_t>(running_.size());
    std::vector<std::string> words = point_command(t.id, r.stats);
    r.device = devices_.take(t.id);
    if (r.device) {
      const std::string option = fmt::format("--device={}", *r.device);
      r.point.command.insert(r.point.command.begin() + 2, option);
      words.insert(words.begin() + 2, option);
    }
    words.insert(words.begin(), "/proc/self/exe");
    r.child = std::make_unique<Child>(words);
    running_.push_back(std::move(r));
  }

  void wait() {
    std::vector<pollfd> list;
    for (const Running& r : running_) r.child->add_to(list);
    // Pipes close just before the process can be waited for: look again soon.
    ::poll(list.data(), list.size(), list.size() < 2 * running_.size() ? 2 : 200);
    for (Running& r : running_) r.child->read();
  }

  bool finish(Running& r, StudyRun& result) {
    if (study_.timeout_seconds > 0 && !r.timed_out &&
        r.child->seconds_so_far() > study_.timeout_seconds) {
      r.timed_out = true;
      r.child->kill();
    }
    if (!r.child->has_ended()) return false;
    if (is_interrupted()) return false;  // it may have been killed, too
    const Child::Result& ended = r.child->result();
    Point& p = r.point;
    p.exit_status = ended.status;
    p.wall_seconds = ended.wall_seconds;
    p.cpu_seconds = ended.cpu_seconds;
    p.max_rss_bytes = ended.max_rss_bytes;
    p.output_bytes = ended.output_bytes;
    p.output_sha256 = ended.output_sha256;
    if (r.timed_out) {
      p.status = "timeout";
      p.message = fmt::format("not finished after {:g} s", study_.timeout_seconds);
    } else if (ended.status != 0) {
      p.message = ended.by_signal
                      ? fmt::format("gpusim was ended by signal {}", ended.status - 128)
                      : last_line(ended.errors, fmt::format("exit status {}", ended.status));
    } else {
      try {
        read_statistics(r.stats, p);
        p.status = "ok";
      } catch (const Error& error) {
        p.message = error.what();
      }
    }
    std::error_code ignored;
    fs::remove(r.stats, ignored);
    progress_.add_known(tasks_.list()[r.task].id, p.wall_seconds);
    if (!p.ok()) {
      ++result.failed_here;
      progress_.say(
          fmt::format("{} on {} cores ({}): {}", p.label, p.cores, p.backend_asked, p.message));
    }
    ++result.ran;
    tasks_.finish(r.task, std::move(p));
    return true;
  }

  void show() {
    if (!progress_.is_due()) return;
    tasks_.refresh();
    std::vector<PointId> waiting, now;
    std::vector<double> so_far;
    size_t failed = 0;
    for (const Task& t : tasks_.list()) {
      if (!t.done) waiting.push_back(t.id);
      failed += t.done && !t.done->ok();
    }
    for (const Running& r : running_) {
      const PointId& id = tasks_.list()[r.task].id;
      std::erase_if(waiting, [&](const PointId& w) {
        return w.one == id.one && w.backend == id.backend && w.cores == id.cores &&
               w.repeat == id.repeat;
      });
      now.push_back(id);
      so_far.push_back(r.child->seconds_so_far());
    }
    const size_t all = tasks_.list().size();
    progress_.show(all - tasks_.unfinished(), all, failed, waiting, now, so_far);
  }

  const Study& study_;
  DeviceShares devices_;
  Tasks& tasks_;
  Workers& workers_;
  const std::string running_folder_;
  const Json machine_ = machine_json();
  std::vector<Running> running_;
  std::chrono::milliseconds wait_for_others_ = kWait;
  StudyProgress progress_;
};

// Names are settled where the study begins; they must mean something here, too.
void check_backends(const Study& study, const std::string& node) {
  for (const std::string& name : study.backends)
    for (const BackendInfo& backend : all_backends()) {
      std::string why_not;
      if (backend.name == name && !backend.available(&why_not))
        throw Error(
            fmt::format("backend {}, with which the study began, is not available at {}: {}", name,
                        node, why_not));
    }
}

// What to do about another process that works in the folder.
std::string help_about(const Workers::Card& card, const std::string& folder) {
  const std::string join = fmt::format("`gpusim sweep --join {}` helps it", folder);
  constexpr std::string_view kOfSlurm = "slurm-";
  if (!card.session.starts_with(kOfSlurm)) return join;
  const std::string job = card.session.substr(kOfSlurm.size(), card.session.find('-', 6) - 6);
  return fmt::format(
      "wait for Slurm's job {} (squeue -j {}), or end it by `scancel {}`; {}; if `--slurm` handed "
      "it in, the same command with --slurm waits for it",
      job, job, job, join);
}

// Nobody else may work here but processes that were started together with this one, or those of
// `session`. Some may be about to end.
void check_alone(const std::string& folder, Workers& workers, const std::string& session) {
  constexpr auto kPatience = std::chrono::seconds(2);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (true) {
    std::vector<Workers::Card> others = workers.working();
    std::erase_if(others, [&](const Workers::Card& card) {
      return !card.session.empty() && card.session == session;
    });
    if (others.empty()) return;
    if (std::chrono::steady_clock::now() > deadline)
      throw Error(fmt::format("-o {}: another `gpusim sweep` works in this folder ({}); {}", folder,
                              others[0].text(), help_about(others[0], folder)));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

// What former processes left. Nobody works here any more.
void clear_traces(const std::string& folder, const Workers& workers) {
  std::error_code ignored;
  remove_leftovers(folder);
  fs::remove_all(folder + "/claims", ignored);
  for (const Workers::Card& card : workers.cards())
    if (card.session.empty() || card.session != workers.launch().session)
      fs::remove(fmt::format("{}/workers/{}.json", folder, card.id), ignored);
}

// The first of a job's tasks begins the study, others find it: any of them may be the first.
Study study_of_array(const Study& asked, const std::string& folder, const Json& simulator,
                     Workers& workers, bool restart) {
  if (restart)
    throw Error(
        "--restart: each task of the job would forget what the others did; begin anew with "
        "`gpusim sweep --restart ... --slurm TASKS`, or name another folder");
  const auto cards = workers.cards();
  const bool is_open = std::ranges::any_of(cards, [&](const Workers::Card& card) {
    return card.has_opened && card.session == workers.launch().session;
  });
  if (!is_open && !is_same_study(folder, simulator, asked)) {
    check_alone(folder, workers, workers.launch().session);
    open_study(asked, folder, simulator, false);
  }
  Study study = joined_study(folder, simulator, workers.launch().node, &asked);
  workers.say_opened();
  return study;
}

StudyRun work(const Study& study, const std::string& folder, const Json& simulator,
              Workers& workers, const RunnerOptions& options,
              const std::optional<HandedInJob>& former = std::nullopt) {
  const Launch& launch = workers.launch();
  const bool is_opener = launch.kind == Launch::Kind::kAlone && workers.is_opener();
  StudyRun result;
  Tasks tasks(study, folder, simulator, workers, options.retry);
  result.wanted = tasks.list().size();
  result.kept = result.wanted - tasks.unfinished();
  result.others_wait = launch.kind == Launch::Kind::kRanks;
  {
    const SignalWatch watch;
    if (options.slurm_tasks != 0) {
      run_slurm_job(folder, tasks, workers, options, former, result);
    } else {
      Runner runner(study, folder, tasks, workers, options);
      result.interrupted = !runner.run(is_opener || result.others_wait, result);
      runner.progress().clear();
    }
  }
  if (result.interrupted) {  // maybe because others had finished everything
    tasks.refresh(true);
    result.interrupted = tasks.unfinished() != 0;
  }
  result.left = tasks.unfinished();
  result.reports = result.left == 0 && !result.interrupted && (is_opener || tasks.takes_report());
  for (Task& t : tasks.list()) {
    if (!t.done) continue;
    result.failed += !t.done->ok();
    result.points.push_back(std::move(*t.done));
  }
  if (!launch.session.empty()) {
    workers.end(result.interrupted ? 130 : result.failed_here != 0);
    return result;
  }
  const bool was_last = workers.working().empty();
  workers.leave_no_trace();
  if (is_opener && was_last) {
    std::error_code ignored;
    for (const char* part : {"/workers", "/claims", "/running"})
      fs::remove_all(folder + part, ignored);
  }
  return result;
}

Launch launch_and_session() {
  Launch launch = host::this_launch();
  host::find_session(launch);
  return launch;
}

}  // namespace

StudyRun run_study(const Study& asked, const std::string& folder, const std::string& version,
                   const RunnerOptions& options) {
  (void)DeviceShares(asked, options.devices);  // refuses before there is a folder
  const Launch launch = launch_and_session();
  if (options.slurm_tasks != 0 && launch.kind != Launch::Kind::kAlone)
    throw Error(fmt::format("--slurm: this is {} already; without it, all tasks work together",
                            launch.name));
  const Json simulator = simulator_json(version);
  make_study_folder(folder);
  std::optional<FolderLock> lock;
  if (launch.kind == Launch::Kind::kAlone) try {
      lock.emplace(folder);
    } catch (const Error& error) {
      const std::optional<HandedInJob> job = recorded_job(folder);
      if (!job) throw;
      throw Error(fmt::format("{}; it waits for Slurm's job {}", error.what(), job->id));
    }
  const bool leads = launch.may_open() && launch.kind != Launch::Kind::kArray;
  const std::optional<HandedInJob> former =
      options.slurm_tasks != 0 ? job_at_work(folder) : std::nullopt;
  Workers workers(folder + "/workers", launch, leads);
  Study study = asked;
  if (launch.kind == Launch::Kind::kArray) {
    study = study_of_array(asked, folder, simulator, workers, options.restart);
  } else if (former) {
    if (options.restart)
      throw Error(
          fmt::format("--restart: Slurm's job {} still works on the study in {}; end it "
                      "first: scancel {}",
                      former->id, folder, former->id));
    if (options.retry != former->retry)
      throw Error(
          fmt::format("-o {}: Slurm's job {} still works there, handed in {} --retry: wait "
                      "for it by the same command as then, or end it: scancel {}",
                      folder, former->id, former->retry ? "with" : "without", former->id));
    check_alone(folder, workers, former->session());
    study = joined_study(folder, simulator, launch.node, &asked);
  } else if (leads) {
    check_alone(folder, workers, launch.session);
    clear_traces(folder, workers);
    open_study(study, folder, simulator, options.restart);
    workers.say_opened();
  } else {
    workers.wait_for_opener(folder);
    study = joined_study(folder, simulator, launch.node, &asked);
  }
  if (!leads) check_backends(study, launch.node);
  return work(study, folder, simulator, workers, options, former);
}

StudyRun join_study(const std::string& folder, const std::string& version,
                    const RunnerOptions& options) {
  const Launch launch = launch_and_session();
  const Json simulator = simulator_json(version);
  const Study study = joined_study(folder, simulator, launch.node, nullptr);
  (void)DeviceShares(study, options.devices);  // refuses before it is one of the workers
  check_backends(study, launch.node);
  Workers workers(folder + "/workers", launch, false);
  return work(study, folder, simulator, workers, options);
}

}  // namespace gpusim::sweep
