#include "tests/unit/daemon/fake_simulator.h"

#include <algorithm>
#include <cerrno>
#include <deque>
#include <map>
#include <set>

namespace gpusim::offload {
namespace {

struct State {
  struct Job {
    uint32_t context = 0;
    uint64_t ticket = 0;
    Simulator::LoadDone loaded;
    Simulator::LaunchDone launched;
  };
  struct Context {
    DeviceMemory memory;
    std::set<uint32_t> programs;
    uint32_t next_program = 1;
  };

  Context& context(uint32_t number) {
    const auto it = contexts.find(number);
    if (it == contexts.end()) throw OffloadError(EBADF, "no such context");
    return it->second;
  }
  void end(Job job, int status) {
    if (job.loaded) {
      LoadOutcome outcome;
      outcome.status = status;
      if (status == 0) {
        Context& c = context(job.context);
        outcome.program = c.next_program++;
        outcome.isa = "none";
        c.programs.insert(outcome.program);
      } else {
        outcome.text = "it could not be loaded";
      }
      job.loaded(outcome);
    } else {
      LaunchOutcome outcome;
      outcome.status = status;
      outcome.report.guest_instructions = job.ticket;
      if (status != 0) outcome.text = "it could not be run";
      job.launched(outcome);
    }
  }
  bool take(uint32_t number, const uint64_t* ticket) {
    const auto it = std::find_if(jobs.begin(), jobs.end(), [&](const Job& j) {
      return j.context == number && (!ticket || j.ticket == *ticket);
    });
    if (it == jobs.end()) return false;
    Job job = std::move(*it);
    jobs.erase(it);
    end(std::move(job), -ECANCELED);
    return true;
  }

  SimulatorOptions options;
  std::map<uint32_t, Context> contexts;
  std::deque<Job> jobs;
  uint32_t next_context = 1;
};

// Of the one engine that there is: for the tests' questions.
State* current = nullptr;

}  // namespace

struct Simulator::Impl : State {};

Simulator::Simulator(SimulatorOptions options) : impl_(std::make_unique<Impl>()) {
  impl_->options = std::move(options);
  current = impl_.get();
}
Simulator::~Simulator() { current = nullptr; }
const SimulatorOptions& Simulator::options() const { return impl_->options; }

uint32_t Simulator::open() {
  if (impl_->contexts.size() >= impl_->options.most_contexts)
    throw OffloadError(EBUSY, "too many contexts");
  impl_->contexts.try_emplace(
      impl_->next_context, State::Context{DeviceMemory(impl_->options.address_space_bytes), {}, 1});
  return impl_->next_context++;
}
void Simulator::close(uint32_t context) {
  reset(context);
  impl_->contexts.erase(context);
}
void Simulator::reset(uint32_t context) {
  State::Context& c = impl_->context(context);
  while (impl_->take(context, nullptr)) {
  }
  c.programs.clear();
  c.memory.unmap_all();
}
DeviceMemory& Simulator::memory(uint32_t context) { return impl_->context(context).memory; }
void Simulator::map(uint32_t context, uint64_t address, std::span<const FilePiece> pieces,
                    uint8_t rights) {
  memory(context).map_files(address, pieces, rights);
}
void Simulator::unmap(uint32_t context, uint64_t address, uint64_t size_bytes) {
  if (std::any_of(impl_->jobs.begin(), impl_->jobs.end(),
                  [&](const State::Job& j) { return j.context == context && j.launched; }))
    throw OffloadError(EBUSY, "a kernel runs");
  memory(context).unmap(address, size_bytes);
}
void Simulator::load(uint32_t context, uint64_t ticket, std::span<const uint8_t>,
                     const std::string&, uint32_t, LoadDone done) {
  impl_->context(context);
  impl_->jobs.push_back({context, ticket, std::move(done), {}});
}
void Simulator::unload(uint32_t context, uint32_t program) {
  if (impl_->context(context).programs.erase(program) == 0)
    throw OffloadError(ENOENT, "no such program");
}
Simulator::Symbol Simulator::symbol(uint32_t context, uint32_t program, const std::string& name) {
  if (!impl_->context(context).programs.contains(program) || name.empty())
    throw OffloadError(ENOENT, "no such symbol");
  return {name.size(), program};
}
void Simulator::check(uint32_t context, uint32_t program, uint64_t function) {
  if (!impl_->context(context).programs.contains(program))
    throw OffloadError(ENOENT, "no such program");
  if (function == 0) throw OffloadError(EOPNOTSUPP, "this cannot be a kernel");
}
void Simulator::launch(uint32_t context, uint64_t ticket, const gpusim_launch& launch,
                       LaunchDone done) {
  if (!impl_->context(context).programs.contains(launch.program))
    throw OffloadError(ENOENT, "no such program");
  impl_->jobs.push_back({context, ticket, {}, std::move(done)});
}
void Simulator::cancel(uint32_t context, uint64_t ticket) {
  if (!impl_->take(context, &ticket)) throw OffloadError(ENOENT, "no such command");
}
Counters Simulator::counters(uint32_t context) {
  Counters counters;
  counters.mapped_bytes = memory(context).mapped_bytes();
  return counters;
}
bool Simulator::step() { return test::finish_one(0); }

}  // namespace gpusim::offload

namespace gpusim::test {

using offload::current;

bool finish_one(int status) {
  if (current->jobs.empty()) return false;
  auto job = std::move(current->jobs.front());
  current->jobs.pop_front();
  current->end(std::move(job), status);
  return true;
}
size_t waiting() { return current->jobs.size(); }
size_t open_contexts() { return current->contexts.size(); }

}  // namespace gpusim::test
