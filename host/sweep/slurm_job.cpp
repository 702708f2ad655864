#include "host/sweep/slurm_job.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "device_sim/base/child_process.h"
#include "device_sim/base/digits.h"
#include "device_sim/base/error.h"
#include "device_sim/base/file_descriptor.h"
#include "host/output_file.h"
#include "host/sweep/interrupt.h"
#include "host/sweep/machine.h"
#include "host/sweep/study_progress.h"

namespace gpusim::sweep {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

struct Answer {
  int status = 0;
  std::string text;  // of both standard streams
};

// What a command of Slurm's says.
Answer answer_of(const std::vector<std::string>& words) try {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) < 0) throw Error(std::strerror(errno));
  const FileDescriptor from(ends[0]);
  FileDescriptor to(ends[1]);
  ChildProcess process(
      words,
      {.input = ChildSettings::kNoStream, .output = to.get(), .error = to.get(), .is_apart = true});
  to = FileDescriptor();
  Answer answer;
  char piece[4096];
  while (true) {
    const ssize_t n = ::read(from.get(), piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    answer.text.append(piece, static_cast<size_t>(n));
  }
  answer.status = process.wait();
  while (!answer.text.empty() && answer.text.back() == '\n') answer.text.pop_back();
  return answer;
} catch (const Error& error) {
  throw Error(
      fmt::format("--slurm: {}: {}; is Slurm installed on this machine?", words[0], error.what()));
}

std::string last_line_of(const std::string& path) {
  std::ifstream file(path);
  std::string last;
  for (std::string line; std::getline(file, line);)
    if (line.find_first_not_of(" \r") != std::string::npos) last = line;
  return last.substr(0, 400);
}

std::string first_line_of(const std::string& text) { return text.substr(0, text.find('\n')); }

// A line per task that runs, and one for those that wait.
Answer ask(const std::string& job, const std::string& format) {
  return answer_of({"squeue", "--noheader", "--jobs=" + job, "--format=" + format});
}
bool is_unknown(const Answer& answer) {
  return answer.text.find("Invalid job id") != std::string::npos;
}

constexpr const char* kSchema = "gpusim-slurm-job-1";
std::string logs_of(const std::string& folder) { return folder + "/logs"; }
std::string record_of(const std::string& folder) { return logs_of(folder) + "/job.json"; }

class SlurmJob {
 public:
  SlurmJob(const std::string& folder, const HandedInJob& former)
      : logs_(logs_of(folder)), id_(former.id), tasks_(former.tasks) {}
  SlurmJob(const std::string& folder, uint32_t tasks, const RunnerOptions& options)
      : logs_(logs_of(folder)), tasks_(tasks) {
    std::error_code error;
    fs::create_directories(logs_, error);
    if (error) throw Error(fmt::format("-o {}: {}", logs_, error.message()));
    const std::string program = fs::read_symlink("/proc/self/exe");
    std::string command = fmt::format("exec {} sweep --join {}", quoted(program), quoted(folder));
    if (options.retry) command += " --retry";
    std::vector<std::string> words = {"sbatch", "--parsable", "--job-name=gpusim-sweep",
                                      fmt::format("--array=0-{}", tasks - 1),
                                      // %% is a percent sign to sbatch, too
                                      "--output=" + logs_ + "/%A_%a.log"};
    words.insert(words.end(), options.sbatch.begin(), options.sbatch.end());
    words.push_back("--wrap=" + command);
    const Answer answer = answer_of(words);
    // "17" or "17;cluster", maybe below remarks.
    const std::string line = answer.text.substr(answer.text.rfind('\n') + 1);
    id_ = line.substr(0, line.find(';'));
    if (answer.status != 0 || !is_number(id_))
      throw Error(fmt::format("--slurm: sbatch did not take the job: {}",
                              answer.text.empty() ? "it says nothing" : answer.text));
    const Json json = {{"schema", kSchema},
                       {"job", id_},
                       {"submitted", first_line_of(ask(id_, "%V").text)},
                       {"tasks", tasks},
                       {"retry", options.retry}};
    try {
      host::write_output_file("-o", record_of(folder), json.dump(1) + "\n");
    } catch (const Error&) {
      cancel();
      throw;
    }
  }

  const std::string& id() const { return id_; }
  std::string session() const { return "slurm-" + id_; }
  std::string log(uint32_t task) const { return fmt::format("{}/{}_{}.log", logs_, id_, task); }
  uint32_t tasks() const { return tasks_; }

  // Whether tasks run or wait. Where Slurm does not answer, they may.
  bool is_there() const {
    const Answer answer = ask(id_, "%T");
    return answer.status == 0 ? !answer.text.empty() : !is_unknown(answer);
  }
  void cancel() const { answer_of({"scancel", id_}); }

 private:
  std::string logs_, id_;
  uint32_t tasks_;
};

// Tasks that did not end as they should: each with the end of its log.
std::vector<std::string> problems_of(const SlurmJob& job, const Workers& workers) {
  std::set<uint32_t> fine, known;
  for (const Workers::Card& card : workers.cards()) {
    if (card.session != job.session()) continue;
    known.insert(card.number);
    if (card.status && (*card.status == 0 || *card.status == 1)) fine.insert(card.number);
  }
  std::vector<std::string> list;
  for (uint32_t task = 0; task < job.tasks(); ++task) {
    if (fine.contains(task)) continue;
    const std::string log = job.log(task);
    std::string text = fmt::format("task {} of job {} {}", task, job.id(),
                                   known.contains(task) ? "was ended before its work was done"
                                   : !fs::exists(log)   ? "has not run"
                                                        : "failed");
    if (fs::exists(log)) {
      const std::string last = last_line_of(log);
      text += fmt::format("; its log: {}{}{}", log, last.empty() ? " (empty)" : ": ", last);
    }
    list.push_back(std::move(text));
  }
  return list;
}

}  // namespace

std::optional<HandedInJob> recorded_job(const std::string& folder) {
  std::ifstream file(record_of(folder));
  if (!file) return std::nullopt;
  const Json json = Json::parse(file, nullptr, false);
  HandedInJob job;
  try {
    if (json.at("schema") != kSchema) return std::nullopt;
    json.at("job").get_to(job.id);
    json.at("submitted").get_to(job.submitted);
    json.at("tasks").get_to(job.tasks);
    json.at("retry").get_to(job.retry);
  } catch (const Json::exception&) {  // somebody else's
    return std::nullopt;
  }
  if (!is_number(job.id) || job.submitted.empty()) return std::nullopt;
  return job;
}

std::optional<HandedInJob> job_at_work(const std::string& folder) {
  const std::optional<HandedInJob> job = recorded_job(folder);
  if (!job) return std::nullopt;
  const Answer answer = ask(job->id, "%V");
  if (is_unknown(answer)) return std::nullopt;
  if (answer.status != 0)
    throw Error(fmt::format("--slurm: whether job {} still works on {} is not known; squeue: {}",
                            job->id, folder, first_line_of(answer.text)));
  std::istringstream lines(answer.text);
  for (std::string line; std::getline(lines, line);)
    if (line == job->submitted) return job;
  return std::nullopt;
}

void run_slurm_job(const std::string& folder, Tasks& tasks, Workers& workers,
                   const RunnerOptions& options, const std::optional<HandedInJob>& former,
                   StudyRun& result) {
  if (tasks.unfinished() == 0 && !former) return;
  const size_t before = tasks.unfinished();
  const auto wanted = static_cast<uint32_t>(std::min<size_t>(options.slurm_tasks, before));
  const std::string place = fs::absolute(folder).lexically_normal().string();
  const SlurmJob job = former ? SlurmJob(place, *former) : SlurmJob(place, wanted, options);
  StudyProgress progress(!options.quiet);
  progress.say(fmt::format("{}job {}, {} tasks for {} points; logs: {}/logs",
                           former ? "still at work: " : "", job.id(), job.tasks(), before, folder));
  const Clock::time_point start = Clock::now();
  Clock::time_point next_question = start;
  bool is_there = true;
  while (is_there && tasks.unfinished() != 0 && !is_interrupted()) {
    workers.beat();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    tasks.refresh();
    if (progress.is_due()) {
      std::vector<PointId> waiting;
      size_t failed = 0;
      for (const Task& t : tasks.list()) {
        if (!t.done) waiting.push_back(t.id);
        failed += t.done && !t.done->ok();
      }
      progress.show(tasks.list().size() - waiting.size(), tasks.list().size(), failed, waiting, {},
                    {});
    }
    const Clock::time_point now = Clock::now();
    if (now < next_question) continue;
    // Slurm's controller serves many: the longer the job takes, the less often.
    next_question = now + std::clamp<Clock::duration>((now - start) / 10, std::chrono::seconds(1),
                                                      std::chrono::seconds(30));
    is_there = job.is_there();
  }
  progress.clear();
  result.interrupted = tasks.unfinished() != 0 && is_there;
  // Tasks that found nothing to do any more, or that shall not go on.
  if (is_there) job.cancel();
  if (!is_there) {
    // The last files may be seen late.
    for (int i = 0; i < 5 && tasks.unfinished() != 0; ++i) {
      tasks.refresh(true);
      if (tasks.unfinished() != 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    }
    if (tasks.unfinished() != 0) result.problems = problems_of(job, workers);
  }
  std::error_code ignored;
  fs::remove(record_of(folder), ignored);
  result.ran = before - tasks.unfinished();
}

}  // namespace gpusim::sweep
