// `gpusim sweep`: the same program on many numbers of cores. docs/sweep.md.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "device_sim/base/error.h"
#include "device_sim/base/nearest_name.h"
#include "device_sim/core/backend.h"
#include "host/cli/commands.h"
#include "host/cli/strict_values.h"
#include "host/console.h"
#include "host/exit_status.h"
#include "host/output_file.h"
#include "host/sweep/chips.h"
#include "host/sweep/runner.h"
#include "host/sweep/study_page.h"

namespace gpusim::host {
namespace {
using namespace gpusim::sweep;
namespace fs = std::filesystem;

struct SweepArguments {
  std::string program, folder, cores, name, entry, memory, scaling = "strong", energy, title,
                                                           report, svg_folder, join;
  std::vector<std::string> backends, call, options, compare, chips, vary;
  uint32_t repeat = 0, threads = 0, jobs = 0;
  double timeout_seconds = -1;
  bool simulated_time = false;
  std::string timing;
  RunnerOptions runner;
};

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& w : words) text += (text.empty() ? "" : ", ") + w;
  return text;
}

// Names are settled now, so that a study does not change its backend half-way.
std::string backend_name(const std::string& asked) {
  std::vector<std::string> names;
  for (const BackendInfo& backend : all_backends()) {
    std::string why_not;
    const bool available = backend.available(&why_not);
    if (asked == "auto" && available) return backend.name;
    if (asked == backend.name) {
      if (available) return asked;
      throw Error(fmt::format("backend {} is not available: {}", asked, why_not));
    }
    names.push_back(backend.name);
  }
  throw Error(fmt::format("there is no backend {}{}; there are: {}", asked,
                          did_you_mean(asked, names), joined(names)));
}

Study study_of(const SweepArguments& a, const std::vector<std::string>& guest_args) {
  Study study;
  const std::string cores = a.cores;
  if (is_study_file(a.program)) {
    study = load_study(a.program);
    if (!a.entry.empty() || !a.call.empty() || !a.options.empty() || !a.memory.empty() ||
        !a.name.empty() || !guest_args.empty())
      throw Error(fmt::format(
          "{} is a study file: entry, arguments and options of its programs stand in it",
          a.program));
  } else {
    Case one;
    one.program = a.program;
    one.label = a.name.empty() ? fs::path(a.program).stem().string() : a.name;
    if (!a.entry.empty()) one.options.insert(one.options.end(), {"--entry", a.entry});
    for (const std::string& value : a.call) one.options.push_back("--arg=" + value);
    if (!a.memory.empty()) one.options.insert(one.options.end(), {"--memory", a.memory});
    for (const std::string& option : a.options) one.options.push_back(option);
    one.args = guest_args;
    one.scaling = parse_scaling("--scaling", a.scaling);
    if (cores.empty())
      throw Error("--cores is missing: on how many cores? For example --cores 1,2,4..1024");
    study.cases.push_back(std::move(one));
  }
  if (!cores.empty()) {
    study.cores = parse_cores("--cores", cores);
    for (Case& c : study.cases) c.cores.clear();
  }
  for (Case& c : study.cases)
    for (const std::string& option : time_options(a.simulated_time, a.timing))
      c.options.push_back(option);
  if (!a.chips.empty()) study.chips = a.chips;
  if (!a.vary.empty()) study.vary.clear();
  for (const std::string& text : a.vary) study.vary.push_back(parse_varied_key("--vary", text));
  if (!a.backends.empty()) study.backends = a.backends;
  study.backend_is_auto = std::ranges::find(study.backends, "auto") != study.backends.end();
  for (std::string& backend : study.backends) backend = backend_name(backend);
  if (a.repeat) study.repeat = a.repeat;
  if (a.threads) study.threads = a.threads;
  if (a.jobs) study.jobs = a.jobs;
  if (a.timeout_seconds >= 0) study.timeout_seconds = a.timeout_seconds;
  if (!a.energy.empty()) study.energy = a.energy;
  if (!a.title.empty()) study.title = a.title;
  prepare(study);
  return study;
}

// --svg FOLDER: each chart of a page as a file.
void write_charts(const page::Page& page, const std::string& folder) {
  if (folder.empty()) return;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw Error(fmt::format("--svg {}: {}", folder, error.message()));
  for (const auto& [name, svg] : page.svg_files())
    write_output_file("--svg", folder + "/" + name + ".svg", svg);
}

void write_results(const Results& results, const std::string& folder, const std::string& charts) {
  write_output_file("-o", folder + "/results.csv", results_csv(results));
  write_output_file(
      "-o", folder + "/results.json",
      results_json(results).dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
  write_output_file("-o", folder + "/results.tex", results_latex(results));
  const page::Page page = study_page(results);
  write_output_file("-o", folder + "/index.html", page.html());
  write_charts(page, charts);
}

int run_compare(const SweepArguments& a) {
  const auto first = put_together(load_stored_study(a.compare[0]), a.energy);
  const auto second = put_together(load_stored_study(a.compare[1]), a.energy);
  const auto name = [](const std::string& folder) {
    const fs::path path = fs::path(folder).lexically_normal();
    return (path.has_filename() ? path.filename() : path.parent_path().filename()).string();
  };
  const std::string x = name(a.compare[0]), y = name(a.compare[1]);
  const bool alike = x == y;
  bool any = false;
  for (const Curve& c : first->curves)
    for (const Curve& d : second->curves) any |= c.label == d.label;
  if (!any)
    throw Error(fmt::format("--compare {} {}: the studies have no program in common", a.compare[0],
                            a.compare[1]));
  fs::create_directories(a.folder);
  const page::Page page =
      compare_page(*first, alike ? a.compare[0] : x, *second, alike ? a.compare[1] : y);
  write_output_file("-o", a.folder + "/compare.html", page.html());
  write_charts(page, a.svg_folder);
  write_output_file("-o", a.folder + "/compare.csv", compare_csv(*first, *second));
  if (!a.runner.quiet) console::out("page: {}/compare.html\n", a.folder);
  return 0;
}

int run_report(const SweepArguments& a) {
  const auto results = put_together(load_stored_study(a.report), a.energy);
  write_results(*results, a.report, a.svg_folder);
  if (!a.runner.quiet) console::out("{}\npage: {}/index.html\n", results_text(*results), a.report);
  return 0;
}

// What is to be said and written once a process has nothing left to do. Returns its exit status.
int finish_sweep(const SweepArguments& a, const std::string& folder, const StudyRun& run) {
  if (run.interrupted) {
    console::err("gpusim: interrupted: {} of {} points are kept in {}; the same command goes on\n",
                 run.wanted - run.left, run.wanted, folder);
    return kExitInterrupted;
  }
  for (const std::string& problem : run.problems) console::err("gpusim: {}\n", problem);
  const int own_status = run.failed_here != 0 && !run.others_wait ? 1 : 0;
  if (run.left != 0) {
    if (a.runner.slurm_tasks != 0) {
      console::err("gpusim: {} of {} points are not finished; the same command goes on with them\n",
                   run.left, run.wanted);
      return 1;
    }
    if (!a.runner.quiet)
      console::err("gpusim: {} points ran here; others still run the last {} of {}\n", run.ran,
                   run.left, run.wanted);
    return own_status;
  }
  if (!run.reports) {
    if (!a.runner.quiet)
      console::err("gpusim: {} points ran here; all {} are finished\n", run.ran, run.wanted);
    return own_status;
  }
  StoredStudy stored = load_stored_study(folder);
  stored.points = run.points;
  const auto results = put_together(std::move(stored), "");
  write_results(*results, folder, a.svg_folder);
  if (!a.runner.quiet)
    console::out("{}\n{} points ({} ran now), {} failed\npage: {}/index.html\n",
                 results_text(*results), run.wanted, run.ran, run.failed, folder);
  if (run.failed != 0)
    console::err("gpusim: {} of {} points failed; --retry runs them again\n", run.failed,
                 run.wanted);
  return run.failed ? 1 : 0;
}

void check_join(const CLI::App& command, const std::vector<std::string>& guest_args) {
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    const bool is_known = name == "--join" || name == "--retry" || name == "--quiet" ||
                          name == "--devices" || name == "--svg" || name == "--help";
    if (option->count() != 0 && !is_known)
      throw Error(fmt::format("--join FOLDER takes the study as it was begun: {} is not for it",
                              option->get_name(false, false)));
  }
  if (!guest_args.empty())
    throw Error("--join FOLDER takes the study as it was begun: no arguments after --");
}

int run_sweep(const SweepArguments& a, const std::vector<std::string>& guest_args) {
  if (!a.report.empty()) return run_report(a);
  if (!a.join.empty()) return finish_sweep(a, a.join, join_study(a.join, GPUSIM_VERSION, a.runner));
  if (a.program.empty() && a.folder.empty() && a.compare.empty())
    throw Error(
        "name a program or a study file, and a folder for results: gpusim sweep PROGRAM --cores "
        "1,2,4..64 -o FOLDER, or gpusim sweep STUDY.toml -o FOLDER (gpusim sweep --help tells "
        "more)");
  if (a.folder.empty()) throw Error("-o FOLDER is missing: where results go");
  if (!a.compare.empty()) return run_compare(a);
  if (a.program.empty())
    throw Error("name a program, or a study file (.json, .toml); gpusim sweep --help");
  if (!a.runner.devices.empty() && a.runner.slurm_tasks != 0)
    throw Error("--devices names this machine's GPUs: not with --slurm");
  if (!a.runner.sbatch.empty() && a.runner.slurm_tasks == 0)
    throw Error("--sbatch OPTION is for the job of --slurm TASKS");
  const Study study = study_of(a, guest_args);
  return finish_sweep(a, a.folder, run_study(study, a.folder, GPUSIM_VERSION, a.runner));
}

}  // namespace

void add_sweep_command(CLI::App& app, const std::vector<std::string>& guest_args, Action& action) {
  CLI::App* command = app.add_subcommand("sweep",
                                         "Run a program on many numbers of cores; CSV, JSON and a "
                                         "page with charts. Its arguments stand "
                                         "after --");
  auto a = std::make_shared<SweepArguments>();
  command->add_option("PROGRAM", a->program,
                      "Static ELF file or module, or a study file (.json, .toml)");
  command->add_option("--cores", a->cores,
                      "Numbers of cores: 1,2,4..65536; A..B doubles, A..B+S goes in steps of S");
  command->add_option("-o,--output", a->folder, "Folder of the study; an interrupted one goes on");
  repeatable(command->add_option("--backend", a->backends, "Backend; repeatable"));
  command->add_option("--repeat", a->repeat, "Runs of each point (1)")
      ->check(CLI::Range(1u, 1000u));
  command->add_option("--energy", a->energy, "Energy targets, with commas between")
      ->transform(list_value());
  command->add_option("--entry", a->entry, "As for `gpusim run`");
  repeatable(command->add_option("--arg", a->call,
                                 "Argument of the entry function; repeatable; may hold {cores}"));
  command->add_option("--memory", a->memory, "shared or private")
      ->check(CLI::IsMember({"shared", "private"}));
  repeatable(command->add_option(
      "--run-option", a->options,
      "Another option of `gpusim run`, as --run-option=--memory-size=8G; repeatable"));
  repeatable(command->add_option("--chip", a->chips,
                                 "Points on this chip, as `gpusim run --chip` takes it: lengths in "
                                 "its cycles; repeatable"));
  repeatable(command->add_option(
      "--vary", a->vary,
      "KEY=V1,V2,A..B: run on the chip with each of these values of a key of its description; "
      "repeatable: all combinations"));
  command
      ->add_option("--scaling", a->scaling,
                   "strong: the same work on any number of cores; weak: the same per core; none")
      ->check(CLI::IsMember({"strong", "weak", "none"}));
  command->add_flag("--simulated-time", a->simulated_time,
                    "Speed-ups in cycles of the simulated chip (slower; see `gpusim run`)");
  command->add_option("--timing", a->timing,
                      "Energy target with the cycles per instruction; means --simulated-time");
  command->add_option("--name", a->name, "What the program is called in results");
  command->add_option("--title", a->title, "Of the page");
  command->add_option("--threads", a->threads, "Host threads of one point, at most (all)")
      ->check(CLI::Range(1u, 4096u));
  command->add_option("--jobs", a->jobs, "Points at once (as host threads allow)")
      ->check(CLI::Range(1u, 4096u));
  command
      ->add_option("--devices", a->runner.devices,
                   "GPUs, by number or all, each of which gets one point of backend cuda at a time")
      ->transform(list_value());
  command->add_option("--timeout", a->timeout_seconds, "Seconds after which a point has failed")
      ->check(CLI::Range(0.0, 1e7));
  command->add_flag("--retry", a->runner.retry, "Run points that failed again");
  command->add_flag("--restart", a->runner.restart, "Forget the points that the folder holds");
  command
      ->add_option("--slurm", a->runner.slurm_tasks,
                   "Hand the points to a job array of so many tasks, wait for it, and put "
                   "results together")
      ->check(CLI::Range(1u, 1000000u));
  repeatable(command->add_option("--sbatch", a->runner.sbatch,
                                 "Option of that job, as --sbatch=--time=2:00:00; repeatable"));
  command->add_option("--join", a->join,
                      "Help with the study that runs in this folder, from this or another machine");
  command->add_flag("--quiet", a->runner.quiet, "No progress, no summary");
  command->add_option("--report", a->report,
                      "Write results and page of this folder anew, with what it holds");
  command->add_option("--svg", a->svg_folder,
                      "Write the page's charts to this folder, too: SVG, 88 mm wide, as papers "
                      "have columns");
  command->add_option("--compare", a->compare, "Two folders: a page with both")->expected(2);
  command->callback([a, command, &guest_args, &action] {
    action = [a, command, &guest_args] {
      if (!a->join.empty()) check_join(*command, guest_args);
      return run_sweep(*a, guest_args);
    };
  });
}

}  // namespace gpusim::host
