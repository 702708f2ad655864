#include "host/sweep/runner.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <memory>
#include <tuple>

#include "device_sim/base/error.h"
#include "device_sim/base/file.h"
#include "device_sim/base/json_object.h"
#include "device_sim/core/backend_traits.h"
#include "host/output_file.h"
#include "host/processor.h"
#include "host/sweep/child.h"
#include "host/sweep/study_progress.h"

namespace gpusim::sweep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSchema = "gpusim-study-1";
constexpr uint32_t kGroup = 64;  // lanes that backend simd runs on one host thread

std::string text_of(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// One process at a time works in a folder.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder) {
    const std::string path = folder + "/.lock";
    fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd_ < 0) throw Error(fmt::format("-o {}: {}", folder, std::strerror(errno)));
    if (::flock(fd_, LOCK_EX | LOCK_NB) < 0) {
      ::close(fd_);
      throw Error(fmt::format("-o {}: another `gpusim sweep` works in this folder", folder));
    }
  }
  ~FolderLock() { ::close(fd_); }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int fd_ = -1;
};

volatile std::sig_atomic_t stop_signal = 0;
void note_signal(int number) { stop_signal = number; }

class SignalWatch {
 public:
  SignalWatch() {
    stop_signal = 0;
    struct sigaction action {};
    action.sa_handler = note_signal;  // without SA_RESTART: poll shall return
    for (size_t i = 0; i < std::size(kSignals); ++i) ::sigaction(kSignals[i], &action, &old_[i]);
  }
  ~SignalWatch() {
    for (size_t i = 0; i < std::size(kSignals); ++i) ::sigaction(kSignals[i], &old_[i], nullptr);
  }

 private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction old_[std::size(kSignals)];
};

Json read_json(const std::string& path) {
  Json json = Json::parse(read_text(path), nullptr, false);
  if (!json.is_object() || !json.contains("schema") || json["schema"] != kSchema)
    throw Error(fmt::format("{}: not a study of `gpusim sweep`, or a damaged one", path));
  return json;
}

// A folder is a study's if it can be continued: the same simulator, and what is called the same is
// the same.
void check_same_study(const Json& stored, const Study& study, const Json& simulator,
                      const std::string& folder) {
  const auto refuse = [&](const std::string& what) {
    throw Error(
        fmt::format("-o {}: the study there {}; name another folder, or --restart to begin anew",
                    folder, what));
  };
  const JsonObject object(stored, folder + "/study.json");
  const JsonObject made_by = object.object("simulator");
  if (made_by.json() != simulator)
    refuse(fmt::format("was made by another gpusim ({}, build {:.8})",
                       made_by.text_or("version", "?"), made_by.text_or("sha256", "?")));
  const Study old = study_of_json(object.get("study"), object.at("study"));
  for (const Case& c : study.cases)
    for (const Case& o : old.cases) {
      if (o.label != c.label) continue;
      if (o.program_sha256 != c.program_sha256)
        refuse(fmt::format("ran another program as {}: {} has changed", c.label, c.program));
      if (o.args != c.args || o.options != c.options || o.scaling != c.scaling ||
          o.program != c.program)
        refuse(fmt::format("ran {} with another path, other options or arguments", c.label));
    }
}

// What a killed study leaves: files that were being written. Only names that we make.
void remove_leftovers(const std::string& folder) {
  std::error_code ignored;
  fs::remove_all(folder + "/running", ignored);
  for (const std::string& part : {folder, folder + "/points"})
    for (fs::directory_iterator at(part, ignored), end; !ignored && at != end;
         at.increment(ignored)) {
      const std::string name = at->path().filename();
      const size_t ending = name.find(".json.");
      if (ending != std::string::npos && name.size() == ending + 12)
        fs::remove(at->path(), ignored);
    }
}

void open_folder(const Study& study, const std::string& folder, const Json& simulator,
                 const Json& machine, bool restart) {
  const std::string path = folder + "/study.json";
  remove_leftovers(folder);
  std::string begun = utc_now();
  if (fs::exists(path)) {
    if (restart) {
      fs::remove_all(folder + "/points");
    } else {
      const Json stored = read_json(path);
      check_same_study(stored, study, simulator, folder);
      begun = JsonObject(stored, path).text_or("begun", begun);
    }
  } else {
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.path().filename() != ".lock" && entry.path().filename() != "points")
        throw Error(fmt::format("-o {}: the folder holds other files ({}); name a new one", folder,
                                entry.path().filename().string()));
  }
  fs::create_directories(folder + "/points");
  fs::create_directories(folder + "/running");
  host::write_output_file("-o", path,
                          text_of({{"schema", kSchema},
                                   {"simulator", simulator},
                                   {"machine", machine},
                                   {"begun", begun},
                                   {"study", study_json(study)}}));
}

struct Task {
  PointId id;
  Json identity;
  std::string name;
  uint32_t threads = 1;  // of the host, that it keeps busy
  std::optional<Point> done;
};

// Small machines cannot use many host threads: then several points fit at once.
uint32_t useful_threads(const Study& study, const std::string& backend, uint32_t cores) {
  const uint32_t most = study.threads ? study.threads : host::host_threads();
  if (traits_of(backend).is_on_device) return most;
  return std::clamp((cores + kGroup - 1) / kGroup, 1u, most);
}

std::vector<Task> tasks_of(const Study& study, const Json& simulator) {
  std::vector<Task> tasks;
  for (uint32_t repeat = 1; repeat <= study.repeat; ++repeat)
    for (const std::string& backend : study.backends)
      for (const Case& one : study.cases)
        for (const uint32_t cores : one.cores) {
          Task t;
          t.threads = useful_threads(study, backend, cores);
          t.id = {&one, backend, cores, repeat, traits_of(backend).is_on_device ? 0 : t.threads};
          t.identity = identity_json(t.id, simulator);
          t.name = point_name(t.id, t.identity);
          tasks.push_back(std::move(t));
        }
  return tasks;
}

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

class Runner {
 public:
  Runner(const Study& study, const std::string& folder, std::vector<Task>& tasks, bool quiet)
      : study_(study), folder_(folder), tasks_(tasks), progress_(!quiet) {}

  // Returns whether it got to the end.
  bool run(std::vector<size_t> queue, StudyRun& result) {
    const uint32_t most_threads = host::host_threads();
    const uint32_t most_jobs = study_.jobs ? study_.jobs : most_threads;
    for (const Task& t : tasks_)
      if (t.done) progress_.add_known(t.id, t.done->wall_seconds);
    size_t next = 0;
    while (next < queue.size() || !running_.empty()) {
      uint32_t busy = 0;
      for (const Running& r : running_) busy += tasks_[r.task].threads;
      // --jobs is the user's word; otherwise points share the host's threads without crowding.
      while (
          next < queue.size() && running_.size() < most_jobs && stop_signal == 0 &&
          (running_.empty() || study_.jobs || busy + tasks_[queue[next]].threads <= most_threads)) {
        busy += tasks_[queue[next]].threads;
        start(queue[next++]);
      }
      if (stop_signal != 0) return false;
      wait();
      for (size_t i = 0; i < running_.size();) {
        if (finish(running_[i], result))
          running_.erase(running_.begin() + static_cast<ptrdiff_t>(i));
        else
          ++i;
      }
      show(queue, next, result);
    }
    return true;
  }
  StudyProgress& progress() { return progress_; }

 private:
  struct Running {
    size_t task = 0;
    Point point;
    std::unique_ptr<Child> child;
    std::string stats;
    bool timed_out = false;
  };

  void start(size_t index) {
    const Task& t = tasks_[index];
    Running r;
    r.task = index;
    r.stats = folder_ + "/running/" + t.name + ".json";
    r.point.label = t.id.one->label;
    r.point.backend_asked = t.id.backend;
    r.point.cores = t.id.cores;
    r.point.repeat = t.id.repeat;
    r.point.threads = t.id.threads;
    r.point.command = point_command(t.id, "stats.json");
    r.point.started = utc_now();
    r.point.load = load_average();
    r.point.others = static_cast<uint32_t>(running_.size());
    std::vector<std::string> words = point_command(t.id, r.stats);
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
    if (stop_signal != 0) return false;  // it may have been killed, too
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
    Task& t = tasks_[r.task];
    host::write_output_file("-o", folder_ + "/points/" + t.name + ".json",
                            text_of(point_json(p, t.identity)));
    std::error_code ignored;
    fs::remove(r.stats, ignored);
    progress_.add_known(t.id, p.wall_seconds);
    if (!p.ok()) {
      ++result.failed;
      progress_.say(
          fmt::format("{} on {} cores ({}): {}", p.label, p.cores, p.backend_asked, p.message));
    }
    ++result.ran;
    t.done = std::move(p);
    return true;
  }

  void show(const std::vector<size_t>& queue, size_t next, const StudyRun& result) {
    if (!progress_.is_due()) return;
    std::vector<PointId> waiting, now;
    std::vector<double> so_far;
    for (size_t i = next; i < queue.size(); ++i) waiting.push_back(tasks_[queue[i]].id);
    for (const Running& r : running_) {
      now.push_back(tasks_[r.task].id);
      so_far.push_back(r.child->seconds_so_far());
    }
    progress_.show(result.kept + result.ran, tasks_.size(), result.failed, waiting, now, so_far);
  }

  const Study& study_;
  const std::string& folder_;
  std::vector<Task>& tasks_;
  std::vector<Running> running_;
  StudyProgress progress_;
};

}  // namespace

StudyRun run_study(const Study& study, const std::string& folder, const std::string& version,
                   const RunnerOptions& options) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error || !fs::is_directory(folder))
    throw Error(fmt::format("-o {}: {}", folder,
                            error ? error.message() : "a file of this name is in the way"));
  const FolderLock lock(folder);
  const Json simulator = simulator_json(version);
  open_folder(study, folder, simulator, machine_json(), options.restart);

  StudyRun result;
  std::vector<Task> tasks = tasks_of(study, simulator);
  std::vector<size_t> queue;
  for (size_t i = 0; i < tasks.size(); ++i) {
    Task& t = tasks[i];
    t.done = load_point(folder + "/points/" + t.name + ".json", t.identity);
    if (t.done && !t.done->ok() && options.retry) t.done.reset();
    if (!t.done) {
      queue.push_back(i);
      continue;
    }
    ++result.kept;
    result.failed += !t.done->ok();
  }
  result.wanted = tasks.size();
  {
    const SignalWatch watch;
    Runner runner(study, folder, tasks, options.quiet);
    result.interrupted = !runner.run(queue, result);
    runner.progress().clear();
  }
  fs::remove_all(folder + "/running", error);
  for (Task& t : tasks)
    if (t.done) result.points.push_back(std::move(*t.done));
  return result;
}

StoredStudy load_stored_study(const std::string& folder) {
  if (!fs::is_directory(folder)) throw Error(fmt::format("{}: no folder of a study", folder));
  const std::string path = folder + "/study.json";
  const Json json = read_json(path);
  const JsonObject object(json, path);
  StoredStudy stored;
  const JsonObject simulator = object.object("simulator"), machine = object.object("machine");
  for (const char* key : {"version", "sha256"}) (void)simulator.text_or(key, "");
  for (const char* key : {"processor", "system"}) (void)machine.text_or(key, "");
  for (const char* key : {"host_threads", "memory_bytes"}) (void)machine.number_or(key, 0);
  stored.simulator = simulator.json();
  stored.machine = machine.json();
  object.read("begun", stored.begun);
  stored.study = study_of_json(object.get("study"), object.at("study"));
  // By what stands in them and not by name: the study may come from another machine.
  std::vector<std::pair<size_t, Point>> found;
  std::error_code error;
  for (fs::directory_iterator at(folder + "/points", error), end; !error && at != end;
       at.increment(error)) {
    if (at->path().extension() != ".json") continue;
    const Json point = Json::parse(read_text(at->path()), nullptr, false);
    if (!point.is_object() || !point.contains("identity")) continue;
    const Json& identity = point["identity"];
    const auto is = [&](const char* key, const Json& value) {
      return identity.is_object() && identity.contains(key) && identity[key] == value;
    };
    for (size_t c = 0; c < stored.study.cases.size(); ++c) {
      const Case& one = stored.study.cases[c];
      if (is("label", one.label) && is("program_sha256", one.program_sha256) &&
          is("simulator", stored.simulator))
        found.emplace_back(c, point_of_json(point, at->path()));
    }
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    const auto key = [](const auto& f) {
      return std::tie(f.first, f.second.backend_asked, f.second.cores, f.second.repeat,
                      f.second.started);
    };
    return key(a) < key(b);
  });
  for (auto& [c, point] : found) stored.points.push_back(std::move(point));
  return stored;
}

}  // namespace gpusim::sweep
