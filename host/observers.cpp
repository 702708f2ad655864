#include "host/observers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "device_sim/base/digits.h"
#include "device_sim/base/error.h"
#include "device_sim/core/backend_traits.h"
#include "device_sim/core/sleepers.h"
#include "energy/report.h"
#include "host/caches/report.h"
#include "host/chip/report.h"
#include "host/console.h"
#include "host/output_file.h"
#include "host/races/report.h"
#include "host/run/timeline_power.h"
#include "host/uninitialised/report.h"
#include "translator/common/isa_list.h"

namespace gpusim::host {

Observers::Observers(const RunOptions& options, const std::vector<energy::Target>& targets)
    : options_(options), plugins_(options.plugins, options.own_plugins) {
  if (wants_profile() && options.profile != "-") files_ = parse_profile_files(options.profile);
  follows_calls_ = decide_on_calls();
  if (!options.timeline_path.empty()) timeline_file_.emplace("--timeline", options.timeline_path);
  if (!options.power_path.empty()) power_file_ = power_file(options.power_path);
  if (!options.trace.empty())
    trace_.emplace(parse_trace(options.trace, options.trace_region, options.cores));
  if (!options.caches_path.empty()) cache_shape_ = load_hierarchy(options.caches_path);
  if (!options.chip.empty()) {
    chip_shape_ = chip::find_chip(options.chip);
    if (options.cores > chip_shape_->cores.count)
      throw Error(fmt::format("--cores {}: chip {} has {}", options.cores, chip_shape_->name,
                              chip_shape_->cores.count));
    if (!chip_shape_->energy.core_target.empty())
      energy::find_targets(chip_shape_->energy.core_target);
  }
  if (options.check_races && options.cores > races::Detector::kMostCores)
    throw Error(fmt::format("--check races works on up to {} cores, not on {}",
                            races::Detector::kMostCores, options.cores));
  if (!options.chip_sample.empty()) chip::parse_sampling(options.chip_sample);
  if (!options.chip_page_path.empty())
    chip_page_file_.emplace("--chip-page", options.chip_page_path);
  if (!options.chip_timeline_path.empty())
    chip_timeline_file_.emplace("--chip-timeline", options.chip_timeline_path);
  if (!options.timing_target.empty()) {
    const std::vector<energy::Target> found = energy::find_targets(options.timing_target);
    if (found.size() != 1) throw Error("--timing: expected one target");
    table_ = CycleTable(found.front(), "--timing " + options.timing_target);
    placed_table_ = CycleTable(found.front(), "--timing",
                               cache_shape_.has_value() || chip_shape_.has_value());
  }
  if (wants_profile() && options_.timing_target.empty()) take_time_of(targets);
  if (wants_recorder()) prepare_recorder(targets);
  if (options.simulated_time && !options.locks_in_time) time_.emplace(table_, options.cores);
}

// Journals of more cores take more memory than those of so many together.
constexpr uint32_t kMostFollowedUnasked = 16384;

// Journals of chips and races hold no stack pointers; with a debugger or checkpoints there are
// none.
bool Observers::decide_on_calls() const {
  const RunOptions& o = options_;
  if (o.follow_calls == FollowCalls::kOff || !wants_profile()) return false;
  if (o.follow_calls == FollowCalls::kOn) return true;
  return files_.show_stacks() && o.cores <= kMostFollowedUnasked && !o.check_races &&
         o.chip.empty() && o.gdb_address.empty() && o.checkpoint_path.empty() &&
         o.resume_path.empty();
}

// The first target of --energy that has a clock says how long instructions take, in the profile as
// in the timeline.
void Observers::take_time_of(const std::vector<energy::Target>& targets) {
  for (const energy::Target& target : targets) {
    if (!target.timing) continue;
    placed_table_ = CycleTable(target, "--energy", cache_shape_ || chip_shape_);
    return;
  }
}

void Observers::prepare_recorder(const std::vector<energy::Target>& targets) {
  const bool wants_power = !options_.power_path.empty();
  std::vector<CycleTable> bases{table_};
  for (const energy::Target& target : targets) {
    if (!target.timing) {
      if (wants_power && targets.size() == 1) CycleTable(target, "--power-trace");
      continue;  // one of many
    }
    bases.emplace_back(target, "--power-trace");
    timed_.push_back(&target);
  }
  if (wants_power && timed_.empty()) CycleTable(targets.front(), "--power-trace");
  if (options_.timing_target.empty() && !timed_.empty()) bases.front() = bases[1];
  recorder_.emplace(options_.cores, options_.group_width, std::move(bases));
}

TranslateOptions Observers::translation(const std::string& backend) {
  const bool has_other_readers = options_.check_races || cache_shape_ || chip_shape_ || trace_ ||
                                 plugins_.wants_journal() || follows_calls_;
  // The best one that works here is of the host's processor.
  const std::string known = backend == "auto" ? all_backends().front().name : backend;
  notes_clocks_ =
      options_.locks_in_time && !has_other_readers && traits_of(known).notes_clocks;
  return {.journal = wants_journal(),
          .accesses = wants_accesses(),
          .stamps = options_.check_races,
          .stack_pointers = follows_calls_,
          .functions = options_.locks_in_time || chip_shape_ ? chip::noted_functions()
                                                             : std::vector<NotedName>{},
          .order_only = notes_clocks_,
          .order_functions =
              notes_clocks_ ? chip::order_functions() : std::vector<std::string_view>{},
          .simulated_time = options_.simulated_time || chip_shape_,
          .cpu = options_.cpu};
}

void Observers::complete(MachineConfig& config) const {
  config.per_core_tallies =
      options_.per_core || wants_counts() || wants_recorder() || options_.simulated_time;
  // Those who show what groups lose want cores in groups.
  config.keeps_groups = wants_profile() || wants_recorder() || plugins_.wants_lanes();
  config.count_lanes = config.keeps_groups || options_.wants_stats() ||
                       !options_.checkpoint_path.empty();
  // Who comes first among several host threads differs from run to run.
  if (options_.check_races) config.threads = 1;
  if (wants_journal())
    config.journal_words = Journals::words_for(options_.cores, /*is_seldom_written=*/notes_clocks_);
  config.notes_clocks = notes_clocks_;
  if (notes_clocks_)
    config.class_ticks = chip::class_ticks(
        chip::ideal_chip(options_.cores, table_.cycles, table_.clock_hz).cores);
}

void Observers::start(const Module& module, Backend& backend, const MachineConfig& config,
                      const RunControl& control, Kernel& kernel) {
  module_ = &module;
  backend_ = &backend;
  control_ = &control;
  config_ = config;
  if (wants_journal()) journals_.emplace(module, backend, config);
  if (cache_shape_) journals_->add(caches_.emplace(*cache_shape_, module, config));
  if (follows_calls_)
    journals_->add(calls_.emplace(module, config, options_.program, options_.per_core));
  if (options_.check_races) journals_->add(races_.emplace(module, config.cores));
  if (options_.check_uninitialised) {
    checked_ = &dynamic_cast<uninitialised::CheckedMachine&>(backend);
    checked_frames_ = std::make_unique<CallFrames>(module, kernel, options_.program);
  }
  if (trace_) journals_->add(trace_writer_.emplace(*trace_, module, config.cores));
  if (chip_shape_) {
    chip_ = std::make_unique<chip::ChipModel>(*chip_shape_, module, config,
                                              find_isa(module.isa)->register_bits / 8,
                                              options_.chip_region);
    if (chip_timeline_file_) chip_->record_timeline();
    if (!options_.chip_sample.empty())
      chip_->sample_pieces(chip::parse_sampling(options_.chip_sample));
    journals_->add(*chip_);
  }
  if (options_.locks_in_time) {
    chip_ = std::make_unique<chip::ChipModel>(
        chip::ideal_chip(config.cores, table_.cycles, table_.clock_hz), module, config,
        find_isa(module.isa)->register_bits / 8, "");
    if (notes_clocks_)
      chip_->read_clocks([this](uint32_t core) {
        return clock_word(config_.class_ticks.data(), backend_->tally(core).classes);
      });
    journals_->add(*chip_);
  }
  if (plugins_.wants_journal()) journals_->add(plugins_);
  plugins_.start(options_.program, module, backend, config);
}

uint64_t Observers::longest_slice() {
  const uint64_t of_picture =
      recorder_ && options_.slice == 0 ? recorder_->slice_length() : RunObserver::longest_slice();
  return std::min({slice_limit_, of_picture,
                  journals_ ? journals_->longest_slice() : RunObserver::longest_slice()});
}

void Observers::before_slice() {
  plugins_.announce_blocks();
  if (calls_) calls_->look_at_new_blocks();
}

void Observers::slice_has_run() {
  if (chip_) chip_->settle();
  if (journals_) journals_->after_slice();
}

void Observers::slice_was_handled() {
  if (chip_) {
    if (Sleepers* const sleepers = sleepers_of(*backend_)) {
      sleepers_.resize(config_.cores);
      sleepers->find_sleepers(sleepers_);
    }
    chip_->after_slice(journals_->blocks(), sleepers_);
  }
  if (recorder_)
    recorder_->after_slice(*module_, *backend_, control_->tallies(),
                           [&](uint32_t core) { return control_->is_alive(core); });
}

void Observers::thread_started(uint32_t child, uint32_t parent) {
  if (journals_) journals_->started(child, parent);
  if (time_)
    time_->start(child, control_->tallies().of_core(*backend_, child), parent,
                 control_->tallies().of_core(*backend_, parent));
}

void Observers::thread_ended(uint32_t core) {
  if (caches_) caches_->ended(core);
  if (chip_) chip_->ended(core);
}

void Observers::thread_woken(uint32_t core, uint32_t by) {
  if (chip_) chip_->woken(core, by);
  if (races_) races_->woken(core, by);
  if (time_)
    time_->start(core, control_->tallies().of_core(*backend_, core), by,
                 control_->tallies().of_core(*backend_, by));
}

void Observers::thread_left(uint32_t core, uint64_t word) {
  if (races_) races_->ended(core, word);
  if (chip_) chip_->left(core, word);
}

void Observers::wait_timed_out(uint32_t core) {
  if (chip_) chip_->timed_out(core);
}

void Observers::handler_begins(uint32_t core, uint64_t pc, uint64_t handler) {
  if (chip_) chip_->handler_begins(core);
  const int slot = module_->abi.stack_pointer;
  if (calls_ && slot != kNoSlot)
    calls_->handler_begins(core, pc, handler, backend_->slot(core, static_cast<Slot>(slot)));
}

void Observers::handler_ends(uint32_t core) {
  if (chip_) chip_->handler_ends(core);
  if (calls_) calls_->handler_ends(core);
}

void Observers::call_was_made(uint32_t core, const char* name) {
  if (races_) races_->called(core, name);
  if (checked_) checked_->called(core, name);
}

void Observers::time_service(uint32_t core, Service service, uint64_t address, uint64_t number) {
  if (chip_) {
    if (service == Service::kTimeRelease)
      chip_->release(core, address, number);
    else
      chip_->acquire(core, address, number);
  }
  if (!time_) return;
  const ClassCounts executed = control_->tallies().of_core(*backend_, core);
  if (service == Service::kTimeRelease)
    time_->release(core, executed, address, number);
  else
    time_->acquire(core, executed, address, number);
}

double Observers::cycles(uint32_t core) const {
  return time_->now(core, control_->tallies().of_core(*backend_, core));
}

// --- after the run

void Observers::summarise(RunSummary& summary) {
  plugins_.end();
  if (wants_counts() || wants_profile())
    places_ = profile_places(*module_, *backend_, control_->tallies());
  if (chip_shape_) finish_chip(summary);
  if (caches_) cache_report_ = caches_->report();
  if (cache_report_) place_memory_in(summary);
  if (caches_) summary.caches = RunSummary::Caches{*cache_shape_, *cache_report_};
  if (races_)
    summary.races = std::make_shared<const races::RaceReport>(
        races::make_report(*races_, *module_, config_, options_.program));
  if (checked_)
    summary.uninitialised = std::make_shared<const uninitialised::UninitialisedReport>(
        uninitialised::make_report(*checked_, *module_, config_, *checked_frames_));
  if (options_.simulated_time) summary.simulated_time = time_of_run();
  if (wants_counts()) {
    summary.profile = make_profile(*module_, places_, SourceLines(options_.program, module_));
    summary.longest_cores = longest_cores();
  }
  if (options_.wants_stats()) summary.lanes = summarise_lanes(*module_, *backend_);
  summary.slices = finish_slices();
}

void Observers::finish_chip(RunSummary& summary) {
  chip::ChipResult result = chip_->finish(journals_->blocks());
  cache_report_ = CacheReport{.levels = {},
                              .off_chip_at = result.off_chip_at,
                              .off_chip_of = result.off_chip_of};
  std::vector<energy::Target> core_target;
  if (!chip_shape_->energy.core_target.empty())
    core_target = energy::find_targets(chip_shape_->energy.core_target);
  const SourceLines source(options_.program, module_);
  chip_report_ = std::make_shared<const chip::ChipReport>(chip::make_report(
      *chip_, std::move(result),
      {.function_at = [&](uint64_t pc) { return function_at(*module_, pc); },
       .line_at = [&](uint64_t pc) { return source.at(pc); }},
      core_target.empty() ? nullptr : &core_target.front()));
  summary.chip = chip_report_;
}

void Observers::place_memory_in(RunSummary& summary) {
  place_memory(summary.tally.classes, cache_report_->off_chip());
  for (size_t core = 0; core < summary.per_core.size(); ++core)
    place_memory(summary.per_core[core], cache_report_->off_chip_of[core]);
  const CodeMap& code = module_->code;
  const std::vector<uint64_t>& off_chip_at = cache_report_->off_chip_at;
  for (auto& [pc, use] : places_) {
    const uint64_t unit = code.unit_of(pc);
    place_memory(use.classes, unit < off_chip_at.size() ? off_chip_at[unit] : 0);
  }
}

energy::LongestCores Observers::longest_cores() const {
  energy::LongestCores cores;
  for (uint32_t core = 0; core < options_.cores; ++core) {
    ClassCounts classes = control_->tallies().of_core(*backend_, core);
    if (cache_report_) place_memory(classes, cache_report_->off_chip_of[core]);
    cores.add(classes);
  }
  return cores;
}

RunSummary::Time Observers::time_of_run() {
  RunSummary::Time t{table_.name, energy::Hertz(table_.clock_hz), {}, {}};
  if (options_.locks_in_time) {
    const chip::ChipResult result = chip_->finish(journals_->blocks());
    for (const chip::Ticks clock : result.clocks) t.cycles.push_back(chip::cycles_of(clock));
    for (const chip::Ticks waited : result.waited) t.waited.push_back(chip::cycles_of(waited));
    return t;
  }
  for (uint32_t core = 0; core < options_.cores; ++core) {
    t.cycles.push_back(time_->now(core, control_->tallies().of_core(*backend_, core)));
    t.waited.push_back(time_->waited(core));
  }
  t.leaves_out_locks =
      options_.cores > 1 && chip::takes_locks(*module_, backend_->block_counts());
  return t;
}

std::vector<energy::ActivitySlice> Observers::finish_slices() {
  std::vector<energy::ActivitySlice> slices;
  if (!recorder_) return slices;
  recorder_->finish(*module_, *backend_, control_->tallies(),
                    [&](uint32_t core) { return control_->is_alive(core); });
  if (cache_report_) recorder_->place_memory(cache_report_->off_chip());
  for (const TimeSlice& slice : recorder_->slices()) {
    // Instructions that take no time on this target go with those before.
    if (slice.seconds[0] > 0 || slices.empty()) slices.push_back({slice.seconds[0], {}});
    for (size_t c = 0; c < slice.classes.size(); ++c) slices.back().classes[c] += slice.classes[c];
  }
  if (!slices.empty() && slices.front().seconds <= 0) slices.clear();
  return slices;
}

void Observers::print(const RunSummary& summary) const {
  if (summary.caches)
    console::err("{}", caches_text(summary.caches->shape, summary.caches->report));
  if (summary.chip) console::err("{}", chip::chip_text(*summary.chip));
  if (summary.races) console::err("{}", races::report_text(*summary.races));
  if (summary.uninitialised)
    console::err("{}", uninitialised::report_text(*summary.uninitialised));
  if (const auto& t = summary.simulated_time)
    console::err("simulated time: {} cycles, {} ({})\n",
                 grouped(static_cast<uint64_t>(std::llround(t->most_cycles()))),
                 energy::pretty(energy::Seconds(t->seconds())), t->timing);
  if (summary.simulated_time && summary.simulated_time->leaves_out_locks)
    console::err("  as if locks let all cores pass: --simulated-time=locks puts them in order\n");
}

void Observers::write() {
  if (trace_writer_) trace_writer_->finish();
  if (chip_page_file_) chip_page_file_->write(chip::chip_html(*chip_report_, options_.program));
  if (chip_timeline_file_)
    chip_timeline_file_->write(chip::chip_timeline_json(*chip_report_, options_.program));
  if (wants_profile()) write_profile_table();
  if (recorder_) write_power_and_timeline();
}

void Observers::write_profile_table() const {
  const ProfileReport report =
      make_profile_report(*module_, places_, InlineFrames(options_.program, module_),
                          {.program = options_.program,
                           .backend = backend_->name(),
                           .cores = options_.cores,
                           .table = placed_table_,
                           .lanes = summarise_lanes(*module_, *backend_),
                           .calls = calls_ ? std::optional(calls_->stacks()) : std::nullopt});
  if (options_.profile == "-")
    console::err("{}", profile_text(report));
  else
    write_profile(files_, report, chip_report_.get());
}

void Observers::write_power_and_timeline() const {
  std::vector<PowerTrace> traces;
  for (size_t i = 0; i < timed_.size(); ++i)
    traces.push_back(power_trace(*timed_[i], *recorder_, i + 1, cache_report_.has_value()));
  if (power_file_) write_power(*power_file_, traces, options_.program);
  if (!timeline_file_) return;
  std::vector<PowerTrack> tracks;
  for (const PowerTrace& trace : traces) tracks.push_back(power_track(trace));
  timeline_file_->write(timeline_json(*recorder_, options_.program, tracks));
}

}  // namespace gpusim::host
