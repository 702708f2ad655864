#include "host/launch.h"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <utility>

#include "device_sim/base/error.h"

namespace gpusim::host {
namespace {

using Variables = std::map<std::string, std::string>;

Launch launch(const Variables& variables, uint32_t allowed = 64, uint32_t online = 64) {
  return launch_of(
      [&](const char* name) -> const char* {
        const auto at = variables.find(name);
        return at == variables.end() ? nullptr : at->second.c_str();
      },
      allowed, online);
}

// As Open MPI 4.1.4 and Slurm 22.05.8 of Debian 12 set them.
const Variables kMpi = {{"OMPI_COMM_WORLD_RANK", "2"},
                        {"OMPI_COMM_WORLD_SIZE", "8"},
                        {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                        {"PMIX_NAMESPACE", "1765539841"},
                        {"PMIX_RANK", "2"}};
const Variables kArray = {{"SLURM_JOB_ID", "19"},       {"SLURM_ARRAY_JOB_ID", "17"},
                          {"SLURM_ARRAY_TASK_ID", "3"}, {"SLURM_CPUS_ON_NODE", "6"},
                          {"SLURM_PROCID", "0"},        {"SLURMD_NODENAME", "n4"}};
const Variables kStep = {{"SLURM_JOB_ID", "17"},         {"SLURM_STEP_ID", "0"},
                         {"SLURM_STEP_NUM_TASKS", "12"}, {"SLURM_STEP_TASKS_PER_NODE", "4(x3)"},
                         {"SLURM_PROCID", "5"},          {"SLURM_CPUS_ON_NODE", "32"}};

Variables with(Variables all, const Variables& more) {
  for (const auto& [name, value] : more) all[name] = value;
  return all;
}

TEST_CASE("a process that nothing started together with others") {
  const Launch one = launch({}, 3, 64);
  CHECK(one.kind == Launch::Kind::kAlone);
  CHECK(one.session.empty());
  CHECK(one.threads == 3);
  CHECK(one.may_open());
  CHECK_FALSE(one.node.empty());
  // mpirun -n 1; and a shell in a job of one task.
  CHECK(launch(with(kMpi, {{"OMPI_COMM_WORLD_SIZE", "1"}})).kind == Launch::Kind::kAlone);
  const Launch job = launch({{"SLURM_JOB_ID", "5"}, {"SLURM_CPUS_ON_NODE", "8"}});
  CHECK(job.kind == Launch::Kind::kAlone);
  CHECK(job.threads == 8);
  // Values that are no numbers are none of ours.
  CHECK(launch({{"OMPI_COMM_WORLD_RANK", "x"}}).kind == Launch::Kind::kAlone);
}

TEST_CASE("ranks of mpirun") {
  const Launch one = launch(kMpi);
  CHECK(one.kind == Launch::Kind::kRanks);
  CHECK(one.number == 2);
  CHECK(one.name == "rank 2 of 8");
  CHECK_FALSE(one.may_open());
  CHECK(launch(with(kMpi, {{"OMPI_COMM_WORLD_RANK", "0"}})).may_open());
  CHECK(one.session == launch(with(kMpi, {{"OMPI_COMM_WORLD_RANK", "0"}})).session);
  CHECK(one.session != launch(with(kMpi, {{"PMIX_NAMESPACE", "1"}})).session);
  CHECK(one.session.find_first_of("/. ") == std::string::npos);
}

TEST_CASE("ranks share the processors of their machine, unless they were bound") {
  CHECK(launch(kMpi, 64).threads == 16);  // four of them here
  CHECK(launch(kMpi, 32).threads == 16);  // bound to a socket, two each
  CHECK(launch(kMpi, 8).threads == 8);
  CHECK(launch(kMpi, 1).threads == 1);
  CHECK(launch(kMpi, 2, 2).threads == 1);
}

TEST_CASE("tasks of a job array") {
  const Launch one = launch(kArray);
  CHECK(one.kind == Launch::Kind::kArray);
  CHECK(one.session == "slurm-17");
  CHECK(one.name == "task 3 of job 17");
  CHECK(one.node == "n4");
  CHECK(one.number == 3);
  CHECK(one.threads == 6);
  CHECK(launch(kArray, 4).threads == 4);
  // mpirun in such a job: its ranks belong together.
  CHECK(launch(with(kArray, kMpi)).kind == Launch::Kind::kRanks);
  CHECK(launch(with(kArray, kMpi)).number == 2);
}

TEST_CASE("which part of how many") {
  using Part = std::pair<uint32_t, uint32_t>;
  CHECK(part_of(launch(kMpi)) == Part(3, 8));
  CHECK(part_of(launch(kStep)) == Part(6, 12));
  const Variables array = with(kArray, {{"SLURM_ARRAY_TASK_MIN", "1"},
                                        {"SLURM_ARRAY_TASK_MAX", "9"},
                                        {"SLURM_ARRAY_TASK_STEP", "2"},
                                        {"SLURM_ARRAY_TASK_COUNT", "5"}});
  CHECK(part_of(launch(array)) == Part(2, 5));
  // --array=1,3,9; a task whose array is not known; nobody.
  CHECK_THROWS_AS((void)part_of(launch(with(array, {{"SLURM_ARRAY_TASK_COUNT", "3"}}))), Error);
  CHECK_THROWS_AS((void)part_of(launch(kArray)), Error);
  CHECK_THROWS_AS((void)part_of(launch({})), Error);
}

TEST_CASE("tasks of srun") {
  const Launch one = launch(kStep);
  CHECK(one.kind == Launch::Kind::kRanks);
  CHECK(one.session == "slurm-17-0");
  CHECK(one.name == "task 5 of 12 of job 17");
  CHECK(one.threads == 8);
  CHECK(launch(with(kStep, {{"SLURM_CPUS_PER_TASK", "3"}})).threads == 3);
  CHECK(launch(with(kStep, {{"SLURM_STEP_NUM_TASKS", "1"}})).kind == Launch::Kind::kAlone);
}

}  // namespace
}  // namespace gpusim::host
