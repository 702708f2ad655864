#include "host/offload/service.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <list>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "host/offload/machine.h"
#include "host/offload/program_cache.h"
#include "host/offload/program_image.h"
#include "translator/common/translator.h"

static_assert(GPUSIM_CLASSES == gpusim::kInsnClassCount);
static_assert(GPUSIM_READ == 1 << 0 && GPUSIM_WRITE == 1 << 1);

namespace gpusim::offload {
namespace {

constexpr uint64_t kMostProgramBytes = uint64_t{1} << 30;
constexpr uint64_t kCacheBytes = uint64_t{256} << 20;
constexpr size_t kMostMachines = 4;  // kept per program

uint8_t segment_flags(uint32_t rights) {
  return static_cast<uint8_t>((rights & GPUSIM_READ ? kRead : 0) |
                              (rights & GPUSIM_WRITE ? kWrite : 0));
}

// A program of a context. Its image is at its place only while nobody else needs that: programs with the
// same addresses take turns, in this process's own addresses even those of different devices.
class Program {
 public:
  Program(std::string its_name, DeviceMemory& memory, const Module& module, bool live_data)
      : name(std::move(its_name)),
        translator(Module(module)),
        memory_(memory),
        image_(module, live_data) {
    for (const ProgramImage::Range& r : image_.live())
      memory_.allow_covering(r.address, r.size_bytes);
  }
  ~Program() { remove(); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void install() {
    if (is_installed_) return;
    const auto neighbours = installed();  // a copy: removing changes it
    for (Program* p : neighbours)
      if (p->shares_addresses(*this) && p->image_.overlaps(image_)) p->remove();
    image_.install(memory_);
    is_installed_ = true;
    installed().push_back(this);
  }
  void remove() {
    if (!is_installed_) return;
    image_.remove(memory_);
    is_installed_ = false;
    std::erase(installed(), this);
  }
  bool is_in_the_way(uint64_t address, uint64_t size_bytes) const {
    return is_installed_ && image_.overlaps(address, size_bytes);
  }

  const std::string name;
  Translator translator;
  std::list<std::unique_ptr<Machine>> machines;  // most recently used first

 private:
  // Of all devices of this process, which one thread at a time uses.
  static std::vector<Program*>& installed() {
    static std::vector<Program*> programs;
    return programs;
  }
  bool shares_addresses(const Program& other) const {
    return &memory_ == &other.memory_ || (memory_.is_identity() && other.memory_.is_identity());
  }
  DeviceMemory& memory_;
  ProgramImage image_;
  bool is_installed_ = false;
};

struct Job {
  uint64_t ticket = 0;
  gpusim_launch launch{};
  std::shared_ptr<Program> program;
  Service::LaunchDone done;
  // Of a process, which has a machine and code of its own.
  std::unique_ptr<Translator> translator;
  std::unique_ptr<Machine> machine;
  std::optional<Run> run;  // once it has begun
  std::chrono::steady_clock::time_point begin;
};

// Translates programs in threads of their own. Nobody need wait for one that is no longer wanted.
class Loader {
 public:
  struct Result {
    std::atomic<bool> ready = false;
    ProgramCache::Result program;
    std::exception_ptr error;  // instead
  };

  explicit Loader(std::function<void()> wake) : wake_(std::move(wake)) {}
  ~Loader() {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return running_ == 0; });
  }

  std::shared_ptr<Result> start(std::vector<uint8_t> bytes, std::string name) {
    auto result = std::make_shared<Result>();
    const std::lock_guard lock(mutex_);
    std::thread([this, result, bytes = std::move(bytes), name = std::move(name)] {
      try {
        result->program = cache_.get(bytes, name);
      } catch (...) {
        result->error = std::current_exception();
      }
      result->ready.store(true, std::memory_order_release);
      if (wake_) wake_();
      const std::lock_guard last(mutex_);
      --running_;
      ended_.notify_all();
    }).detach();
    ++running_;
    return result;
  }

 private:
  const std::function<void()> wake_;
  ProgramCache cache_{kCacheBytes};
  std::mutex mutex_;
  std::condition_variable ended_;
  uint32_t running_ = 0;
};

struct Loading {
  uint64_t ticket = 0;
  std::string name;
  uint32_t flags = 0;
  Service::LoadDone done;
  std::shared_ptr<Loader::Result> result;
};

}  // namespace

struct Service::Impl {
  struct Context {
    explicit Context(DeviceMemory its_memory) : memory(std::move(its_memory)) {}
    DeviceMemory memory;
    std::map<uint32_t, std::shared_ptr<Program>> programs;
    std::deque<std::unique_ptr<Job>> jobs;  // the first one runs
    std::vector<Loading> loads;
    uint32_t next_program = 1;
    uint64_t kernels = 0, translations = 0, cached_programs = 0;
  };

  explicit Impl(ServiceOptions its_options) : options(std::move(its_options)) {
    const std::unique_ptr<Backend> b = make_backend(options.backend, /*in_place=*/true);
    options.backend = b->name();
    device = b->device();
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

  void check_ticket(const Context& c, uint64_t ticket) const;
  void clear(Context& c);
  void remove_images(Context& c, uint64_t address, uint64_t size_bytes);
  void begin(Context& c, Job& job);
  Machine& machine_for(Context& c, Program& program, const MachineOptions& wanted);
  std::vector<host::CallWord> arguments(Context& c, const gpusim_launch& launch);
  std::vector<std::string> strings(Context& c, const gpusim_launch& launch);
  void end(Context& c, LaunchOutcome outcome);
  void step_job(Context& c);
  bool finish_loads(Context& c);
  void finish_load(Context& c, Loading loading);

  ServiceOptions options;
  std::string device;
  int null_file = -1;
  Loader loader{options.wake};
  std::map<uint32_t, std::unique_ptr<Context>> contexts;
  uint32_t next_context = 1;
  uint32_t last_served = 0;
};

Service::Service(ServiceOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Service::~Service() {
  for (auto& [number, c] : impl_->contexts) impl_->clear(*c);
}

const ServiceOptions& Service::options() const { return impl_->options; }
std::string Service::backend() const { return impl_->options.backend; }
std::string Service::device() const { return impl_->device; }

uint32_t Service::open() {
  Impl& s = *impl_;
  if (s.contexts.size() >= s.options.most_contexts)
    throw OffloadError(EBUSY, fmt::format("{} contexts are open, which is the most",
                                          s.options.most_contexts));
  const uint32_t number = s.next_context++;
  s.contexts[number] = std::make_unique<Impl::Context>(
      s.options.identity ? DeviceMemory::identity() : DeviceMemory(s.options.address_space_bytes));
  return number;
}

void Service::close(uint32_t context) {
  reset(context);
  impl_->contexts.erase(context);
}

void Service::reset(uint32_t context) { impl_->clear(impl_->context(context)); }

DeviceMemory& Service::memory(uint32_t context) { return impl_->context(context).memory; }

void Service::map(uint32_t context, uint64_t address, std::span<const FilePiece> pieces,
                  uint8_t rights) {
  Impl::Context& c = impl_->context(context);
  uint64_t size_bytes = 0;
  for (const FilePiece& p : pieces) size_bytes += p.size_bytes;
  impl_->remove_images(c, address, size_bytes);
  c.memory.map_files(address, pieces, segment_flags(rights));
}

void Service::map_own(uint32_t context, uint64_t address, uint64_t size_bytes, uint8_t rights) {
  impl_->context(context).memory.map_own(address, size_bytes, segment_flags(rights));
}

void Service::unmap(uint32_t context, uint64_t address, uint64_t size_bytes) {
  Impl::Context& c = impl_->context(context);
  if (!c.jobs.empty())
    throw OffloadError(EBUSY, "a kernel of the context runs or waits; wait for it or cancel it");
  impl_->remove_images(c, address, size_bytes);
  c.memory.unmap(address, size_bytes);
}

// A program that is not in use makes room: it is put back before its next kernel.
void Service::Impl::remove_images(Context& c, uint64_t address, uint64_t size_bytes) {
  for (auto& [number, p] : c.programs) {
    if (!p->is_in_the_way(address, size_bytes)) continue;
    if (!c.jobs.empty() && c.jobs.front()->run)
      throw OffloadError(EBUSY, fmt::format("{} is at device address {:#x} and runs", p->name,
                                            address));
    p->remove();
  }
}

void Service::Impl::clear(Context& c) {
  while (!c.jobs.empty()) {
    LaunchOutcome outcome;
    outcome.status = -ECANCELED;
    outcome.text = "the context was closed or reset";
    end(c, std::move(outcome));
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

void Service::Impl::check_ticket(const Context& c, uint64_t ticket) const {
  const bool taken = std::any_of(c.jobs.begin(), c.jobs.end(),
                                 [&](const auto& j) { return j->ticket == ticket; }) ||
                     std::any_of(c.loads.begin(), c.loads.end(),
                                 [&](const auto& l) { return l.ticket == ticket; });
  if (taken) throw OffloadError(EEXIST, fmt::format("ticket {} is in use", ticket));
  if (c.jobs.size() + c.loads.size() >= options.most_kernels)
    throw OffloadError(EBUSY, fmt::format("{} kernels wait, which is the most",
                                          options.most_kernels));
}

void Service::load(uint32_t context, uint64_t ticket, std::span<const uint8_t> bytes,
                   const std::string& name, uint32_t load_flags, LoadDone done) {
  Impl::Context& c = impl_->context(context);
  impl_->check_ticket(c, ticket);
  if (load_flags & ~uint32_t{GPUSIM_LOAD_LIVE_DATA})
    throw OffloadError(EINVAL, fmt::format("unknown flags {:#x} of a load", load_flags));
  if (bytes.size() > kMostProgramBytes)
    throw OffloadError(EFBIG, fmt::format("a program of {} bytes: at most {}", bytes.size(),
                                          kMostProgramBytes));
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

bool Service::Impl::finish_loads(Context& c) {
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

void Service::Impl::finish_load(Context& c, Loading loading) {
  LoadOutcome outcome;
  try {
    if (loading.result->error) std::rethrow_exception(loading.result->error);
    const ProgramCache::Result& result = loading.result->program;
    const uint32_t number = c.next_program++;
    c.programs[number] = std::make_shared<Program>(loading.name, c.memory, *result.module,
                                                   loading.flags & GPUSIM_LOAD_LIVE_DATA);
    outcome.program = number;
    outcome.cached = result.cached;
    outcome.isa = result.module->isa;
    for (const Block& b : result.module->blocks) outcome.guest_instructions += b.insn_count;
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

void Service::unload(uint32_t context, uint32_t number) {
  Impl::Context& c = impl_->context(context);
  const std::shared_ptr<Program> p = impl_->program(c, number);
  if (std::any_of(c.jobs.begin(), c.jobs.end(), [&](const auto& j) { return j->program == p; }))
    throw OffloadError(EBUSY, fmt::format("a kernel of {} runs or waits", p->name));
  c.programs.erase(number);
}

Service::Symbol Service::symbol(uint32_t context, uint32_t number, const std::string& name) {
  const std::shared_ptr<Program> p = impl_->program(impl_->context(context), number);
  const gpusim::Symbol* s = find_symbol(p->translator.module(), name);
  if (!s) throw OffloadError(ENOENT, fmt::format("{} has no symbol {}", p->name, name));
  return {s->address, s->size_bytes};
}

void Service::launch(uint32_t context, uint64_t ticket, const gpusim_launch& launch,
                     LaunchDone done) {
  Impl::Context& c = impl_->context(context);
  impl_->check_ticket(c, ticket);
  if (launch.cores == 0 || launch.cores > impl_->options.most_cores)
    throw OffloadError(EINVAL, fmt::format("{} cores: there can be 1 to {}", launch.cores,
                                           impl_->options.most_cores));
  if (launch.argument_count > GPUSIM_MOST_ARGUMENTS)
    throw OffloadError(EINVAL, fmt::format("{} arguments: there can be at most {}",
                                           launch.argument_count, GPUSIM_MOST_ARGUMENTS));
  if ((launch.flags & ~uint32_t{GPUSIM_LAUNCH_PROCESS}) ||
      std::any_of(std::begin(launch.reserved), std::end(launch.reserved),
                  [](uint64_t w) { return w != 0; }))
    throw OffloadError(EINVAL, "unknown flags of a launch, or reserved fields that are not zero");
  if (launch.output_size_bytes != 0 &&
      !c.memory.bytes(launch.output, launch.output_size_bytes, kWrite))
    throw OffloadError(EFAULT, fmt::format("output to {:#x}: {} bytes are not mapped there for "
                                           "writing",
                                           launch.output, launch.output_size_bytes));
  auto job = std::make_unique<Job>();
  job->ticket = ticket;
  job->launch = launch;
  job->program = impl_->program(c, launch.program);
  job->done = std::move(done);
  c.jobs.push_back(std::move(job));
}

void Service::cancel(uint32_t context, uint64_t ticket) {
  Impl::Context& c = impl_->context(context);
  const auto job = std::find_if(c.jobs.begin(), c.jobs.end(),
                                [&](const auto& j) { return j->ticket == ticket; });
  if (job != c.jobs.end()) {
    std::rotate(c.jobs.begin(), job, job + 1);
    LaunchOutcome outcome;
    outcome.status = -ECANCELED;
    outcome.text = "cancelled";
    return impl_->end(c, std::move(outcome));
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

Counters Service::counters(uint32_t context) {
  const Impl::Context& c = impl_->context(context);
  return {.copied_bytes = 0,  // backends that copy are not accepted
          .mapped_bytes = c.memory.mapped_bytes(),
          .kernels = c.kernels,
          .translations = c.translations,
          .cached_programs = c.cached_programs};
}

std::vector<host::CallWord> Service::Impl::arguments(Context& c, const gpusim_launch& launch) {
  std::vector<host::CallWord> words;
  for (uint32_t i = 0; i < launch.argument_count; ++i) {
    const gpusim_argument& a = launch.arguments[i];
    host::CallWord word{.word = {}, .is_float = a.is_float != 0, .per_core = {}};
    switch (a.kind) {
      case GPUSIM_ARGUMENT_VALUE:
        word.word = {a.value, 0};
        break;
      case GPUSIM_ARGUMENT_AFFINE:
        word.word = {a.value, a.step};
        break;
      case GPUSIM_ARGUMENT_CORES:
        word.word = {launch.cores, 0};
        break;
      case GPUSIM_ARGUMENT_PER_CORE: {
        const auto table = c.memory.bytes(a.value, uint64_t{8} * launch.cores, kRead);
        if (!table || a.value % 8 != 0)
          throw OffloadError(EFAULT, fmt::format("argument {}: no table of {} words of 64 bits at "
                                                 "{:#x}",
                                                 i, launch.cores, a.value));
        word.per_core = {reinterpret_cast<const uint64_t*>(table->data()), launch.cores};
        break;
      }
      default:
        throw OffloadError(EINVAL, fmt::format("argument {}: unknown kind {}", i, a.kind));
    }
    words.push_back(word);
  }
  return words;
}

std::vector<std::string> Service::Impl::strings(Context& c, const gpusim_launch& launch) {
  constexpr uint64_t kMost = 1 << 20;
  if (launch.strings_size_bytes == 0) return {};
  const auto bytes = c.memory.bytes(launch.strings, launch.strings_size_bytes, kRead);
  if (!bytes || bytes->size() > kMost)
    throw OffloadError(EFAULT, fmt::format("arguments of the program: {} bytes are not mapped at "
                                           "{:#x}, or more than {}",
                                           launch.strings_size_bytes, launch.strings, kMost));
  // One copy: the memory may change meanwhile.
  const std::string copy(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  std::vector<std::string> out;
  for (size_t begin = 0; begin < copy.size();) {
    const size_t end = std::min(copy.find('\0', begin), copy.size());
    out.push_back(copy.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

Machine& Service::Impl::machine_for(Context& c, Program& program, const MachineOptions& wanted) {
  auto& machines = program.machines;
  const auto it = std::find_if(machines.begin(), machines.end(),
                               [&](const auto& m) { return m->fits(wanted); });
  if (it != machines.end()) {
    machines.splice(machines.begin(), machines, it);
  } else {
    while (machines.size() >= kMostMachines) machines.pop_back();
    machines.push_front(std::make_unique<Machine>(program.translator, &c.memory, wanted));
  }
  return *machines.front();
}

void Service::Impl::begin(Context& c, Job& job) {
  const gpusim_launch& l = job.launch;
  const MachineOptions wanted{.backend = options.backend,
                              .threads = options.threads,
                              .cores = l.cores,
                              .stack_size_bytes = l.stack_size_bytes};
  RunRequest request{.name = job.program->name,
                     .function = l.function,
                     .arguments = {},
                     .is_process = (l.flags & GPUSIM_LAUNCH_PROCESS) != 0,
                     .strings = {},
                     .max_instructions = l.max_instructions,
                     .most_output_bytes = std::min(l.output_size_bytes, options.most_output_bytes),
                     .null_file = null_file};
  job.begin = std::chrono::steady_clock::now();
  if (request.is_process) {
    request.strings = strings(c, l);
    job.translator = std::make_unique<Translator>(Module(job.program->translator.module()));
    job.machine = std::make_unique<Machine>(*job.translator, nullptr, wanted);
    job.run.emplace(*job.machine, request);
    return;
  }
  job.program->install();
  Machine& machine = machine_for(c, *job.program, wanted);
  const std::vector<host::CallWord> words = arguments(c, l);
  request.arguments = words;
  job.run.emplace(machine, request);
}

// The first job of the context has ended.
void Service::Impl::end(Context& c, LaunchOutcome outcome) {
  const std::unique_ptr<Job> job = std::move(c.jobs.front());
  c.jobs.pop_front();
  if (job->run) {
    outcome.report = job->run->report();
    if (outcome.text.empty()) outcome.text = job->run->trouble();
    const std::string& output = job->run->output();
    const auto room = c.memory.bytes(job->launch.output, output.size(), kWrite);
    if (!output.empty() && room) std::memcpy(room->data(), output.data(), output.size());
    ++c.kernels;
  }
  job->done(outcome);
}

void Service::Impl::step_job(Context& c) {
  Job& job = *c.jobs.front();
  LaunchOutcome outcome;
  try {
    if (!job.run)
      begin(c, job);
    else if (!job.machine)
      job.program->install();  // another one may have had its turn
    const bool goes_on = job.run->step();
    if (const auto lost = c.memory.lost_address())
      throw OffloadError(EFAULT, fmt::format("the memory at device address {:#x} is gone: its file "
                                             "was cut short on the host; unmap it",
                                             *lost));
    if (goes_on) {
      auto limit = std::chrono::nanoseconds(job.launch.time_limit_ns);
      if (options.time_limit.count() != 0 && (limit.count() == 0 || limit > options.time_limit))
        limit = options.time_limit;
      if (limit.count() == 0 || std::chrono::steady_clock::now() - job.begin < limit) return;
      outcome.status = -ETIMEDOUT;
      outcome.text = fmt::format("the kernel ran for longer than its limit of {:.3f} s",
                                 std::chrono::duration<double>(limit).count());
    }
  } catch (const OffloadError& e) {
    outcome.status = -e.number();
    outcome.text = e.what();
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
  end(c, std::move(outcome));
}

bool Service::step() {
  Impl& s = *impl_;
  bool worked = false;
  for (auto& [number, c] : s.contexts) worked |= s.finish_loads(*c);
  // The next context after the one served last that has a kernel.
  auto it = s.contexts.upper_bound(s.last_served);
  for (size_t i = 0; i < s.contexts.size(); ++i, ++it) {
    if (it == s.contexts.end()) it = s.contexts.begin();
    if (it->second->jobs.empty()) continue;
    s.last_served = it->first;
    s.step_job(*it->second);
    return true;
  }
  return worked;
}

}  // namespace gpusim::offload
