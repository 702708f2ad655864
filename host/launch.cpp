#include "host/launch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "device_sim/base/error.h"
#include "host/pmi.h"
#include "host/processor.h"

namespace gpusim::host {
namespace {

using Variable = std::function<const char*(const char*)>;

std::string text_of(const Variable& variable, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const char* value = variable(name); value && *value) return value;
  return "";
}

// The number that a text begins with: "2(x3),1" is 2.
std::optional<uint32_t> number_of(const Variable& variable,
                                  std::initializer_list<const char*> names) {
  const std::string text = text_of(variable, names);
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end == text.data()) return std::nullopt;
  return value;
}

std::string as_file_name(std::string_view text) {
  std::string name;
  for (const char c : text.substr(0, 80))
    name += std::isalnum(static_cast<unsigned char>(c)) || c == '_' ? c : '-';
  return name;
}

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  return ::gethostname(name, sizeof name - 1) == 0 && *name ? name : "unknown";
}

}  // namespace

Launch launch_of(const Variable& variable, uint32_t allowed, uint32_t online) {
  Launch launch;
  // Several of Slurm's nodes may be one machine.
  const std::string node = text_of(variable, {"SLURMD_NODENAME"});
  launch.node = node.empty() ? host_name() : node;
  launch.threads = allowed;
  const auto share = [&](uint32_t all, uint32_t processes) {
    launch.threads = std::clamp(all / std::max(1u, processes), 1u, std::max(1u, allowed));
  };
  const std::string job = text_of(variable, {"SLURM_JOB_ID"});

  // Open MPI first: mpirun may stand in a job of Slurm.
  if (const auto rank = number_of(variable, {"OMPI_COMM_WORLD_RANK"})) {
    const uint32_t size = number_of(variable, {"OMPI_COMM_WORLD_SIZE"}).value_or(1);
    if (size > 1) {
      launch.kind = Launch::Kind::kRanks;
      launch.number = *rank;
      launch.session =
          as_file_name("mpi-" + text_of(variable, {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}) +
                       "-" + text_of(variable, {"OMPI_MCA_orte_precondition_transports"}));
      launch.name = fmt::format("rank {} of {}", *rank, size);
      launch.index = *rank;
      launch.of = size;
      // A process that was bound has its processors, maybe with others; else all share all.
      share(online, number_of(variable, {"OMPI_COMM_WORLD_LOCAL_SIZE"}).value_or(1));
    }
    return launch;
  }
  const auto step_tasks = number_of(variable, {"SLURM_STEP_NUM_TASKS"});
  // MPICH's and Intel MPI's mpiexec (Hydra). In a job of Slurm it starts its own processes by srun,
  // one per node, whose variables ranks inherit; srun itself may set the same as Hydra
  // (--mpi=pmi2), and then tells more.
  const auto pmi_rank = number_of(variable, {"PMI_RANK"});
  const auto pmi_size = number_of(variable, {"PMI_SIZE"});
  const bool is_of_srun =
      number_of(variable, {"SLURM_PROCID"}) == pmi_rank && step_tasks == pmi_size;
  if (pmi_rank && pmi_size && !is_of_srun) {
    if (*pmi_size > 1) {
      launch.kind = Launch::Kind::kRanks;
      launch.number = *pmi_rank;
      launch.name = fmt::format("rank {} of {}", *pmi_rank, *pmi_size);
      launch.index = *pmi_rank;
      launch.of = *pmi_size;
      share(online, number_of(variable, {"MPI_LOCALNRANKS"}).value_or(1));
    }
    return launch;
  }
  if (const auto task = number_of(variable, {"SLURM_PROCID"});
      task && !job.empty() && step_tasks && *step_tasks > 1) {
    launch.kind = Launch::Kind::kRanks;
    launch.number = *task;
    launch.session =
        as_file_name(fmt::format("slurm-{}-{}", job, text_of(variable, {"SLURM_STEP_ID"})));
    launch.name = fmt::format("task {} of {} of job {}", *task, *step_tasks, job);
    launch.index = *task;
    launch.of = *step_tasks;
    if (const auto own = number_of(variable, {"SLURM_CPUS_PER_TASK"}))
      share(*own, 1);
    else
      share(number_of(variable, {"SLURM_CPUS_ON_NODE"}).value_or(online),
            number_of(variable, {"SLURM_STEP_TASKS_PER_NODE"}).value_or(1));
    return launch;
  }
  if (const auto rank = number_of(variable, {"PMIX_RANK"}); rank && step_tasks.value_or(2) > 1) {
    launch.kind = Launch::Kind::kRanks;
    launch.number = *rank;
    launch.session = as_file_name("pmix-" + text_of(variable, {"PMIX_NAMESPACE"}));
    launch.name = fmt::format("rank {}", *rank);
    return launch;
  }
  const std::string array = text_of(variable, {"SLURM_ARRAY_JOB_ID"});
  if (const auto task = number_of(variable, {"SLURM_ARRAY_TASK_ID"}); task && !array.empty()) {
    launch.kind = Launch::Kind::kArray;
    launch.number = *task;
    launch.session = as_file_name("slurm-" + array);
    launch.name = fmt::format("task {} of job {}", *task, array);
    const uint32_t least = number_of(variable, {"SLURM_ARRAY_TASK_MIN"}).value_or(0);
    const uint32_t most = number_of(variable, {"SLURM_ARRAY_TASK_MAX"}).value_or(0);
    const uint32_t step = number_of(variable, {"SLURM_ARRAY_TASK_STEP"}).value_or(1);
    const uint32_t count = number_of(variable, {"SLURM_ARRAY_TASK_COUNT"}).value_or(0);
    // Of a list with gaps a task cannot know its place.
    if (step != 0 && least <= *task && *task <= most && (most - least) / step + 1 == count) {
      launch.index = (*task - least) / step;
      launch.of = count;
    }
  } else {
    launch.name = fmt::format("process {}", ::getpid());
  }
  if (const auto own = number_of(variable, {"SLURM_CPUS_ON_NODE"}); own && !job.empty())
    share(*own, 1);
  return launch;
}

Launch this_launch() {
  const long online = ::sysconf(_SC_NPROCESSORS_ONLN);
  return launch_of([](const char* name) { return std::getenv(name); }, host_threads(),
                   static_cast<uint32_t>(std::max(1L, online)));
}

void find_session(Launch& launch) {
  if (launch.kind != Launch::Kind::kRanks || !launch.session.empty()) return;
  const auto fd = number_of([](const char* name) { return std::getenv(name); }, {"PMI_FD"});
  const std::string job = fd && *fd <= INT_MAX ? pmi_job_name(static_cast<int>(*fd)) : "";
  if (job.empty())
    throw Error(fmt::format(
        "this is {}, but what started it does not say of which launch (PMI_FD{}): an mpiexec "
        "starts one `gpusim sweep` per rank; or begin the study without MPI and let the ranks help "
        "by `env -u PMI_RANK gpusim sweep --join FOLDER`",
        launch.name, fd ? " does not answer, or was asked before" : " is missing"));
  launch.session = as_file_name("pmi-" + job);
}

std::pair<uint32_t, uint32_t> part_of(const Launch& launch) {
  if (launch.of == 0)
    throw Error(fmt::format(
        "--part auto: {}; give the part as K/N",
        launch.kind == Launch::Kind::kAlone
            ? "this is no process of mpirun or mpiexec -n 2 or more, of srun, or of a job array"
            : "the numbers of the job's tasks have gaps, or it is not known how many there are"));
  return {launch.index + 1, launch.of};
}

}  // namespace gpusim::host
