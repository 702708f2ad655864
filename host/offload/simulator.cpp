#include "host/offload/simulator.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <list>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "device_sim/core/device_error.h"
#include "device_sim/core/devices.h"
#include "device_sim/core/linear_space.h"
#include "device_sim/core/memory_view.h"
#include "host/offload/launch_words.h"
#include "host/offload/loader.h"
#include "host/offload/machine.h"
#include "host/offload/program.h"
#include "translator/common/translator.h"

static_assert(GPUSIM_READ == 1 << 0 && GPUSIM_WRITE == 1 << 1);

namespace gpusim::offload {
namespace {

constexpr uint64_t kMostProgramBytes = uint64_t{1} << 30;
constexpr uint64_t kCacheBytes = uint64_t{256} << 20;
constexpr size_t kMostRunning = 8;  // kernels of a context at once

uint8_t segment_flags(uint32_t rights) {
  return static_cast<uint8_t>((rights & GPUSIM_READ ? kRead : 0) |
                              (rights & GPUSIM_WRITE ? kWrite : 0));
}

using Clock = std::chrono::steady_clock;

struct Job {
  uint64_t ticket = 0;
  gpusim_launch launch{};
  std::shared_ptr<Program> program;
  Simulator::LaunchDone done;
  Clock::time_point arrival = Clock::now(), begin;
  bool has_begun = false;
  // Of a process, which has a machine and code of its own.
  std::unique_ptr<Translator> translator;
  std::unique_ptr<KernelMachine> own_machine;
  KernelMachine* machine = nullptr;  // of the program, taken
  bool machine_is_lost = false;
  uint64_t copied_before = 0;  // bytes, of its context
  bool is_in_space = false;    // between begin_kernel() and end_kernel() of its context's space
  Program::ChipState chip;
  std::optional<Run> run;  // once it has begun
  // Of a kernel that ended in faults: it waits for their source lines.
  std::shared_ptr<LineSearches::Search> search;
  std::optional<Clock::time_point> ended;
};

struct Loading {
  uint64_t ticket = 0;
  std::string name;
  uint32_t flags = 0;
  Simulator::LoadDone done;
  std::shared_ptr<Loader::Result> result;
};

}  // namespace

struct Simulator::Impl {
  struct Context {
    explicit Context(DeviceMemory its_memory) : memory(std::move(its_memory)) {}
    uint64_t copied_bytes() const {
      if (!memory.space()) return 0;
      const LinearSpace::Moved moved = memory.space()->moved();
      return moved.to_device + moved.from_device;
    }
    DeviceMemory memory;
    std::map<uint32_t, std::shared_ptr<Program>> programs;
    // In the order of their launches. Those of one queue run one after the other.
    std::list<std::unique_ptr<Job>> jobs;
    uint64_t last_served = 0;  // ticket
    std::vector<Loading> loads;
    uint32_t next_program = 1;
    uint64_t kernels = 0, translations = 0, cached_programs = 0;
    std::string lost;  // why no kernel can run here any more, until a reset
  };

  explicit Impl(SimulatorOptions its_options) : options(std::move(its_options)) {
    const std::unique_ptr<Backend> b = make_backend(options.backend, {.in_place = true});
    options.backend = b->name();
    device = b->device();
    // What a context will have.
    if (const auto space = make_space(nullptr, kPageSize, options.address_space_bytes))
      device += std::string(", guest memory ") + name_of(space->way());
    null_file = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null_file < 0) throw std::runtime_error("cannot open /dev/null");
    if (options.threads == 0) options.threads = std::max(1u, std::thread::hardware_concurrency());
  }

  ~Impl() { ::close(null_file); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Context& context(uint32_t number) {
    const auto it = contexts.find(number);
    if (it == contexts.end()) throw OffloadError(EBADF, fmt::format("no context {}", number));
    return *it->second;
  }
  std::shared_ptr<Program> program(Context& c, uint32_t number) {
    const auto it = c.programs.find(number);
    if (it == c.programs.end())
      throw OffloadError(ENOENT, fmt::format("no program {} in this context", number));
    return it->second;
  }

  std::unique_ptr<LinearSpace> make_space(uint8_t* storage, uint64_t base, uint64_t end) const {
    return make_linear_space(
        options.backend,
        {.storage = storage, .base = base, .size_bytes = end - base, .way = options.guest_memory});
  }
  void lose_device(const std::string& why, Context* whose);
  // For operations: errors of the device become the caller's.
  template <class F>
  void on_device(Context& c, F f) {
    if (!c.memory.space()) return f();
    try {
      c.memory.space()->enter();
      f();
    } catch (const DeviceError& e) {
      if (e.is_lost) lose_device(e.what(), &c);
      throw OffloadError(EIO, e.what());
    }
  }
  void check_ticket(const Context& c, uint64_t ticket) const;
  void clear(Context& c);
  void remove_images(Context& c, uint64_t address, uint64_t size_bytes);
  using JobPlace = std::list<std::unique_ptr<Job>>::iterator;
  JobPlace next_job(Context& c);
  void begin(Context& c, Job& job);
  void resume(Job& job);
  void end(Context& c, JobPlace place, LaunchOutcome outcome);
  void finish_on_device(Context& c, Job& job);
  void report(Context& c, Job& job, LaunchOutcome& outcome);
  void leave_machine(Job& job, bool keeps);
  void step_job(Context& c, JobPlace place);
  bool finish_loads(Context& c);
  void finish_load(Context& c, Loading loading);
  bool finish_searches(Context& c);

  SimulatorOptions options;
  std::string device;
  int null_file = -1;
  Loader loader{kCacheBytes, options.wake};
  LineSearches searches{options.find_lines, options.wake};
  std::map<uint32_t, std::unique_ptr<Context>> contexts;
  uint32_t next_context = 1;
  uint32_t last_served = 0;
  // Whose slice runs on a device: one at a time.
  Context* running_context = nullptr;
  const Job* running_job = nullptr;
};

Simulator::Simulator(SimulatorOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}
Simulator::~Simulator() {
  for (auto& [number, c] : impl_->contexts) impl_->clear(*c);
}

const SimulatorOptions& Simulator::options() const { return impl_->options; }
std::string Simulator::backend() const { return impl_->options.backend; }
std::string Simulator::device() const { return impl_->device; }

uint32_t Simulator::open() {
  Impl& s = *impl_;
  if (s.contexts.size() >= s.options.most_contexts)
    throw OffloadError(
        EBUSY, fmt::format("{} contexts are open, which is the most", s.options.most_contexts));
  const uint32_t number = s.next_context++;
  auto context = std::make_unique<Impl::Context>(
      s.options.identity ? DeviceMemory::identity() : DeviceMemory(s.options.address_space_bytes));
  DeviceMemory& m = context->memory;
  try {
    m.set_space(s.make_space(m.pointer(m.lowest()), m.lowest(), m.size_bytes()));
  } catch (const DeviceError& e) {
    if (e.is_lost) s.lose_device(e.what(), nullptr);
    throw OffloadError(EIO, e.what());
  } catch (const std::runtime_error& e) {
    throw OffloadError(ENOMEM, e.what());
  }
  s.contexts[number] = std::move(context);
  return number;
}

void Simulator::close(uint32_t context) {
  reset(context);
  impl_->contexts.erase(context);
}

void Simulator::reset(uint32_t context) {
  Impl::Context& c = impl_->context(context);
  impl_->clear(c);
  c.lost.clear();
}

DeviceMemory& Simulator::memory(uint32_t context) { return impl_->context(context).memory; }

void Simulator::map(uint32_t context, uint64_t address, std::span<const FilePiece> pieces,
                    uint8_t rights) {
  Impl::Context& c = impl_->context(context);
  uint64_t size_bytes = 0;
  for (const FilePiece& p : pieces) size_bytes += p.size_bytes;
  impl_->on_device(c, [&] {
    impl_->remove_images(c, address, size_bytes);
    c.memory.map_files(address, pieces, segment_flags(rights));
  });
}

void Simulator::map_own(uint32_t context, uint64_t address, uint64_t size_bytes, uint8_t rights) {
  Impl::Context& c = impl_->context(context);
  impl_->on_device(c, [&] { c.memory.map_own(address, size_bytes, segment_flags(rights)); });
}

void Simulator::unmap(uint32_t context, uint64_t address, uint64_t size_bytes) {
  Impl::Context& c = impl_->context(context);
  if (!c.jobs.empty())
    throw OffloadError(EBUSY, "a kernel of the context runs or waits; wait for it or cancel it");
  impl_->on_device(c, [&] {
    impl_->remove_images(c, address, size_bytes);
    c.memory.unmap(address, size_bytes);
  });
}

// A program that is not in use makes room: it is put back before its next kernel.
void Simulator::Impl::remove_images(Context& c, uint64_t address, uint64_t size_bytes) {
  for (auto& [number, p] : c.programs) {
    if (!p->is_in_the_way(address, size_bytes)) continue;
    if (std::ranges::any_of(c.jobs,
                            [&p = p](const auto& j) { return j->has_begun && j->program == p; }))
      throw OffloadError(EBUSY,
                         fmt::format("{} is at device address {:#x} and runs", p->name, address));
    p->remove();
  }
}

void Simulator::Impl::clear(Context& c) {
  while (!c.jobs.empty()) {
    LaunchOutcome outcome;
    outcome.status = -ECANCELED;
    outcome.text = "the context was closed or reset";
    end(c, c.jobs.begin(), std::move(outcome));
  }
  for (Loading& loading : c.loads) {
    LoadOutcome outcome;
    outcome.status = -ECANCELED;
    outcome.text = "the context was closed or reset";
    loading.done(outcome);
  }
  c.loads.clear();
  c.programs.clear();
  c.memory.unmap_all();
}

void Simulator::Impl::check_ticket(const Context& c, uint64_t ticket) const {
  const bool taken = std::any_of(c.jobs.begin(), c.jobs.end(),
                                 [&](const auto& j) { return j->ticket == ticket; }) ||
                     std::any_of(c.loads.begin(), c.loads.end(),
                                 [&](const auto& l) { return l.ticket == ticket; });
  if (taken) throw OffloadError(EEXIST, fmt::format("ticket {} is in use", ticket));
  if (c.jobs.size() + c.loads.size() >= options.most_kernels)
    throw OffloadError(EBUSY,
                       fmt::format("{} kernels wait, which is the most", options.most_kernels));
}

void Simulator::load(uint32_t context, uint64_t ticket, std::span<const uint8_t> bytes,
                     const std::string& name, uint32_t load_flags, LoadDone done) {
  Impl::Context& c = impl_->context(context);
  impl_->check_ticket(c, ticket);
  if (load_flags & ~uint32_t{GPUSIM_LOAD_LIVE_DATA})
    throw OffloadError(EINVAL, fmt::format("unknown flags {:#x} of a load", load_flags));
  if (bytes.size() > kMostProgramBytes)
    throw OffloadError(
        EFBIG, fmt::format("a program of {} bytes: at most {}", bytes.size(), kMostProgramBytes));
  Loading loading{.ticket = ticket,
                  .name = name,
                  .flags = load_flags,
                  .done = std::move(done),
                  .result = nullptr};
  try {
    loading.result = impl_->loader.start({bytes.begin(), bytes.end()}, name);
  } catch (const std::exception& e) {  // no memory, or no thread
    throw OffloadError(ENOMEM, fmt::format("cannot translate {}: {}", name, e.what()));
  }
  c.loads.push_back(std::move(loading));
}

bool Simulator::Impl::finish_loads(Context& c) {
  bool finished = false;
  for (size_t i = 0; i < c.loads.size();) {
    if (!c.loads[i].result->ready.load(std::memory_order_acquire)) {
      ++i;
      continue;
    }
    Loading loading = std::move(c.loads[i]);
    c.loads.erase(c.loads.begin() + static_cast<std::ptrdiff_t>(i));
    finish_load(c, std::move(loading));
    finished = true;
  }
  return finished;
}

void Simulator::Impl::finish_load(Context& c, Loading loading) {
  LoadOutcome outcome;
  try {
    if (loading.result->error) std::rethrow_exception(loading.result->error);
    const ProgramCache::Result& result = loading.result->program;
    const uint32_t number = c.next_program++;
    c.programs[number] = std::make_shared<Program>(loading.name, c.memory, *result.program,
                                                   loading.flags & GPUSIM_LOAD_LIVE_DATA);
    c.programs[number]->lines.file = result.bytes;
    outcome.program = number;
    outcome.cached = result.cached;
    outcome.isa = result.program->module().isa;
    for (const Block& b : result.program->module().blocks)
      outcome.guest_instructions += b.insn_count;
    ++(result.cached ? c.cached_programs : c.translations);
  } catch (const OffloadError& e) {
    outcome.status = -e.number();
    outcome.text = e.what();
  } catch (const std::bad_alloc&) {
    outcome.status = -ENOMEM;
    outcome.text = loading.name + ": no memory to translate it";
  } catch (const std::exception& e) {
    outcome.status = -ENOEXEC;
    outcome.text = e.what();
  }
  loading.done(outcome);
}

void Simulator::unload(uint32_t context, uint32_t number) {
  Impl::Context& c = impl_->context(context);
  const std::shared_ptr<Program> p = impl_->program(c, number);
  if (std::any_of(c.jobs.begin(), c.jobs.end(), [&](const auto& j) { return j->program == p; }))
    throw OffloadError(EBUSY, fmt::format("a kernel of {} runs or waits", p->name));
  c.programs.erase(number);
}

Simulator::Symbol Simulator::symbol(uint32_t context, uint32_t number, const std::string& name) {
  const std::shared_ptr<Program> p = impl_->program(impl_->context(context), number);
  const gpusim::Symbol* s = find_symbol(p->translator.module(), name);
  if (!s) throw OffloadError(ENOENT, fmt::format("{} has no symbol {}", p->name, name));
  return {s->address, s->size_bytes};
}

void Simulator::launch(uint32_t context, uint64_t ticket, const gpusim_launch& launch,
                       LaunchDone done) {
  Impl::Context& c = impl_->context(context);
  impl_->check_ticket(c, ticket);
  check_launch(launch, c.memory, impl_->options.most_cores);
  if (!c.lost.empty()) throw OffloadError(EIO, c.lost);
  auto job = std::make_unique<Job>();
  job->ticket = ticket;
  job->launch = launch;
  job->program = impl_->program(c, launch.program);
  job->done = std::move(done);
  c.jobs.push_back(std::move(job));
}

void Simulator::cancel(uint32_t context, uint64_t ticket) {
  Impl::Context& c = impl_->context(context);
  const auto job = std::find_if(c.jobs.begin(), c.jobs.end(),
                                [&](const auto& j) { return j->ticket == ticket; });
  if (job != c.jobs.end()) {
    LaunchOutcome outcome;
    outcome.status = -ECANCELED;
    outcome.text = "cancelled";
    return impl_->end(c, job, std::move(outcome));
  }
  const auto load = std::find_if(c.loads.begin(), c.loads.end(),
                                 [&](const auto& l) { return l.ticket == ticket; });
  if (load == c.loads.end())
    throw OffloadError(ENOENT, fmt::format("no command with ticket {} runs or waits", ticket));
  Loading loading = std::move(*load);
  c.loads.erase(load);
  LoadOutcome outcome;
  outcome.status = -ECANCELED;
  outcome.text = "cancelled";
  loading.done(outcome);
}

void Simulator::check(uint32_t context, uint32_t number, uint64_t function) {
  const std::shared_ptr<Program> p = impl_->program(impl_->context(context), number);
  if (const std::optional<std::string> why = p->objection(function))
    throw OffloadError(EOPNOTSUPP, *why);
}

Counters Simulator::counters(uint32_t context) {
  const Impl::Context& c = impl_->context(context);
  return {.copied_bytes = c.copied_bytes(),
          .mapped_bytes = c.memory.mapped_bytes(),
          .kernels = c.kernels,
          .translations = c.translations,
          .cached_programs = c.cached_programs};
}

// The next one after that served last, of those that are the first of their queue.
Simulator::Impl::JobPlace Simulator::Impl::next_job(Context& c) {
  if (c.jobs.size() == 1 && !c.jobs.front()->search) return c.jobs.begin();
  std::vector<uint64_t> queues;
  size_t running = 0;
  for (const auto& j : c.jobs) running += j->has_begun;
  JobPlace first = c.jobs.end();
  bool is_after = false;
  for (JobPlace it = c.jobs.begin(); it != c.jobs.end(); ++it) {
    const Job& job = **it;
    const bool is_behind = std::ranges::find(queues, job.launch.queue) != queues.end();
    queues.push_back(job.launch.queue);
    if (!is_behind && !job.search && (job.has_begun || running < kMostRunning)) {
      if (is_after) return it;
      if (first == c.jobs.end()) first = it;
    }
    is_after |= job.ticket == c.last_served;
  }
  return first;
}

void Simulator::Impl::begin(Context& c, Job& job) {
  const gpusim_launch& l = job.launch;
  job.begin = Clock::now();
  job.has_begun = true;
  const KernelMachineOptions wanted{.backend = options.backend,
                                    .compiled_regions = options.compiled_regions,
                                    .threads = options.threads,
                                    .cores = l.cores,
                                    .stack_size_bytes = l.stack_size_bytes};
  const bool is_process = (l.flags & GPUSIM_LAUNCH_PROCESS) != 0;
  const bool is_guarded = job.program->is_live && !is_process;
  RunRequest request{.name = job.program->name,
                     .guard = is_guarded ? &job.program->guard : nullptr,
                     .function = l.function,
                     .arguments = {},
                     .is_process = is_process,
                     .strings = {},
                     .max_instructions = l.max_instructions,
                     .most_output_bytes = std::min(l.output_size_bytes, options.most_output_bytes),
                     .null_file = null_file};
  if (is_process) {
    request.strings = launch_strings(l, c.memory);
    job.translator = std::make_unique<Translator>(job.program->unguarded());
    job.own_machine = std::make_unique<KernelMachine>(*job.translator, nullptr, wanted);
    job.run.emplace(*job.own_machine, request);
    return;
  }
  job.program->install();
  job.program->prepare(l.function);
  job.machine = &job.program->take_machine(wanted);
  const LaunchWords words = launch_words(l, c.memory);
  request.arguments = words.words;
  if (LinearSpace* const space = c.memory.space()) {
    job.copied_before = c.copied_bytes();
    space->begin_kernel();
    job.is_in_space = true;
  }
  job.run.emplace(*job.machine, request);
}

// Others may have had their turn.
void Simulator::Impl::resume(Job& job) {
  if (job.own_machine) return;
  job.program->install();
  job.program->resume_kernel(job.chip);
}

void Simulator::Impl::end(Context& c, JobPlace place, LaunchOutcome outcome) {
  const std::unique_ptr<Job> job = std::move(*place);
  c.jobs.erase(place);
  try {
    finish_on_device(c, *job);
    report(c, *job, outcome);
  } catch (const DeviceError& e) {
    leave_machine(*job, false);
    if (e.is_lost) lose_device(e.what(), &c);
    if (outcome.status == 0) outcome.status = -EIO;
    if (outcome.text.empty()) outcome.text = e.what();
  }
  leave_machine(*job, !job->machine_is_lost);
  job->done(outcome);
}

void Simulator::Impl::report(Context& c, Job& job, LaunchOutcome& outcome) {
  if (!job.run) return;
  if (!job.program->lines.known.empty() && !job.run->places().empty())
    job.run->tell_lines(job.program->lines.known);
  outcome.report = job.run->report(outcome.classes);
  outcome.report.waited_ns = static_cast<uint64_t>((job.begin - job.arrival).count());
  outcome.report.lasted_ns =
      static_cast<uint64_t>((job.ended.value_or(Clock::now()) - job.begin).count());
  if (outcome.text.empty()) outcome.text = job.run->trouble();
  const std::string output = job.run->output();
  const auto room = c.memory.bytes(job.launch.output, output.size(), kWrite);
  if (!output.empty() && room)
    c.memory.store(job.launch.output,
                   {reinterpret_cast<const uint8_t*>(output.data()), output.size()});
  outcome.report.output_kept_bytes = room ? output.size() : 0;
  if (!job.own_machine) outcome.report.copied_bytes = c.copied_bytes() - job.copied_before;
  ++c.kernels;
}

// `keeps`: it can serve other kernels.
void Simulator::Impl::leave_machine(Job& job, bool keeps) {
  job.run.reset();
  if (KernelMachine* const machine = std::exchange(job.machine, nullptr)) {
    if (keeps)
      job.program->give_machine(*machine);
    else
      job.program->drop_machine(*machine);
  }
  job.own_machine.reset();
  job.program->forget_kernel(job.chip);
}

// What the device still does for it, and what its cores changed.
void Simulator::Impl::finish_on_device(Context& c, Job& job) {
  if (running_job == &job) {
    running_job = nullptr;
    running_context = nullptr;
  }
  if (c.memory.space()) c.memory.space()->enter();
  if (job.run) job.run->settle();
  if (std::exchange(job.is_in_space, false)) c.memory.space()->end_kernel();
}

// All kernels end that were on the device, and their machines; programs and memory stay. The
// context whose kernel it was gets no more of them until its reset.
void Simulator::Impl::lose_device(const std::string& why, Context* whose) {
  running_job = nullptr;
  running_context = nullptr;
  std::vector<std::pair<std::unique_ptr<Job>, Context*>> ended;
  for (auto& [number, c] : contexts)
    for (auto place = c->jobs.begin(); place != c->jobs.end();) {
      const auto next = std::next(place);
      if ((*place)->has_begun) {
        ended.emplace_back(std::move(*place), c.get());
        c->jobs.erase(place);
      }
      place = next;
    }
  for (auto& [job, c] : ended) leave_machine(*job, false);
  for (auto& [number, c] : contexts) {
    for (auto& [n, p] : c->programs) p->drop_idle_machines();
    if (c->memory.space()) c->memory.space()->release_device();
  }
  std::string why_not;
  std::string state = "the device was begun anew; reset this context, or open it again";
  const bool works = reset_device(options.backend, &why_not);
  if (!works) state = "and cannot be used any more: " + why_not;
  for (auto& [number, c] : contexts) {
    try {
      if (works && c->memory.space()) c->memory.space()->restore();
    } catch (const std::exception& e) {
      c->lost = fmt::format(
          "the device was lost ({}), and does not take this context's memory "
          "again: {}",
          why, e.what());
    }
    if (!works || c.get() == whose) c->lost = fmt::format("the device failed ({}), {}", why, state);
  }
  for (auto& [job, c] : ended) {
    LaunchOutcome outcome;
    outcome.status = -EIO;
    outcome.text = fmt::format("the device failed while {} ran ({})", job->program->name, why);
    ++c->kernels;
    job->done(outcome);
  }
}

bool Simulator::Impl::finish_searches(Context& c) {
  bool finished = false;
  // From the first one on each time: whoever hears of an end may cancel others.
  const auto is_ready = [](const auto& job) {
    return job->search && job->search->ready.load(std::memory_order_acquire);
  };
  for (JobPlace place; (place = std::ranges::find_if(c.jobs, is_ready)) != c.jobs.end();) {
    Job& job = **place;
    LineSearches::learn(job.program->lines, *job.search);
    try {
      resume(job);  // its text may tell what is in memory
    } catch (const OffloadError&) {
    }
    end(c, place, {});
    finished = true;
  }
  return finished;
}

void Simulator::Impl::step_job(Context& c, JobPlace place) {
  Job& job = **place;
  c.last_served = job.ticket;
  LaunchOutcome outcome;
  using Step = host::RunControl::Step;
  try {
    if (!c.lost.empty()) throw OffloadError(EIO, c.lost);
    if (c.memory.space()) c.memory.space()->enter();
    if (!job.has_begun) begin(c, job);
    if (job.run->is_busy()) return;
    resume(job);  // others may have put their programs in its place
    const Step step = job.run->step();
    if (step == Step::kRuns) {
      running_context = &c;
      running_job = &job;
      return;
    }
    running_context = nullptr;
    running_job = nullptr;
    const bool goes_on = step == Step::kGoesOn;
    if (const auto lost = c.memory.lost_address())
      throw OffloadError(EFAULT, fmt::format("the memory at device address {:#x} is gone: its file "
                                             "was cut short on the host; unmap it",
                                             *lost));
    if (goes_on) {
      auto limit = std::chrono::nanoseconds(job.launch.time_limit_ns);
      if (options.time_limit.count() != 0 && (limit.count() == 0 || limit > options.time_limit))
        limit = options.time_limit;
      if (limit.count() == 0 || Clock::now() - job.begin < limit) return;
      outcome.status = -ETIMEDOUT;
      outcome.text = fmt::format("the kernel ran for longer than its limit of {:.3f} s",
                                 std::chrono::duration<double>(limit).count());
    } else {
      job.ended = Clock::now();
      job.search = searches.start(job.program->lines, job.run->places());
      if (job.search) return;
    }
  } catch (const OffloadError& e) {
    outcome.status = -e.number();
    outcome.text = e.what();
  } catch (const DeviceError& e) {
    if (e.is_lost) return lose_device(e.what(), &c);
    outcome.status = -EIO;
    outcome.text = e.what();
    job.machine_is_lost = true;
  } catch (const std::bad_alloc&) {
    outcome.status = -ENOMEM;
    outcome.text = "no memory for the kernel";
  } catch (const gpusim::Error& e) {
    outcome.status = -EINVAL;
    outcome.text = e.what();
  } catch (const std::exception& e) {
    outcome.status = -ENOMEM;
    outcome.text = e.what();
  }
  end(c, place, std::move(outcome));
}

bool Simulator::step() {
  Impl& s = *impl_;
  bool worked = false;
  for (auto& [number, c] : s.contexts) {
    worked |= s.finish_loads(*c);
    worked |= s.finish_searches(*c);
  }
  if (s.running_job) {
    Impl::Context& c = *s.running_context;
    const auto place = std::ranges::find(
        c.jobs, s.running_job, [](const auto& job) { return static_cast<const Job*>(job.get()); });
    s.step_job(c, place);
    return true;
  }
  // The next context after the one served last that has a kernel.
  auto it = s.contexts.upper_bound(s.last_served);
  for (size_t i = 0; i < s.contexts.size(); ++i, ++it) {
    if (it == s.contexts.end()) it = s.contexts.begin();
    const auto job = s.next_job(*it->second);
    if (job == it->second->jobs.end()) continue;
    s.last_served = it->first;
    s.step_job(*it->second, job);
    return true;
  }
  return worked;
}

}  // namespace gpusim::offload
