#include "host/launch.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "device_sim/base/error.h"
#include "host/pmi.h"

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

// As MPICH 4.0.2 of Debian 12 sets them.
const Variables kHydra = {{"PMI_RANK", "2"},
                          {"PMI_SIZE", "8"},
                          {"PMI_FD", "9"},
                          {"MPI_LOCALNRANKS", "4"},
                          {"MPI_LOCALRANKID", "2"}};

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

TEST_CASE("ranks of mpiexec of MPICH or Intel MPI") {
  const Launch one = launch(kHydra);
  CHECK(one.kind == Launch::Kind::kRanks);
  CHECK(one.number == 2);
  CHECK(one.name == "rank 2 of 8");
  CHECK(one.session.empty());  // the launcher has to be asked
  CHECK_FALSE(one.may_open());
  CHECK(launch(with(kHydra, {{"PMI_RANK", "0"}})).may_open());
  CHECK(one.threads == 16);  // four ranks on 64 processors
  CHECK(launch(kHydra, 5).threads == 5);
  CHECK(launch({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}).threads == 64);
  CHECK(part_of(one) == std::pair<uint32_t, uint32_t>(3, 8));
  CHECK(launch(with(kHydra, {{"PMI_SIZE", "1"}})).kind == Launch::Kind::kAlone);
  CHECK(launch(with(kHydra, {{"PMI_RANK", "x"}})).kind == Launch::Kind::kAlone);
  CHECK(launch({{"PMI_RANK", "1"}}).kind == Launch::Kind::kAlone);
  // In a job of Slurm Hydra's own processes are started by srun, one per node.
  const Launch inner = launch(with(kStep, kHydra));
  CHECK(inner.name == "rank 2 of 8");
  CHECK(launch(with(kArray, kHydra)).name == "rank 2 of 8");
  // srun --mpi=pmi2.
  CHECK(launch(with(kStep, {{"PMI_RANK", "5"}, {"PMI_SIZE", "12"}})).session == "slurm-17-0");
  CHECK(launch(with(kMpi, {{"PMI_RANK", "5"}, {"PMI_SIZE", "12"}})).number == 2);
}

// Answers to a rank's lines, in their order, and what the rank sent.
struct Manager {
  int ends[2] = {-1, -1};
  std::thread thread;
  std::string received;

  explicit Manager(std::vector<std::string> answers) {
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    thread = std::thread([this, answers = std::move(answers)] {
      for (const std::string& answer : answers) {
        char c = 0;
        do {
          if (::recv(ends[1], &c, 1, 0) != 1) return;
          received += c;
        } while (c != '\n');
        (void)::send(ends[1], answer.data(), answer.size(), MSG_NOSIGNAL);
      }
      ::shutdown(ends[1], SHUT_RDWR);
    });
  }
  ~Manager() {
    ::shutdown(ends[0], SHUT_RDWR);
    thread.join();
    ::close(ends[0]);
    ::close(ends[1]);
  }
};

TEST_CASE("what Hydra says of a launch") {
  const std::string begun = "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n";
  const std::string name = "cmd=my_kvsname kvsname=kvs_4711_0_17_n4\n";
  {
    Manager manager({begun, name, "cmd=finalize_ack\n"});
    CHECK(pmi_job_name(manager.ends[0]) == "kvs_4711_0_17_n4");
    manager.thread.join();
    CHECK(manager.received ==
          "cmd=init pmi_version=1 pmi_subversion=1\ncmd=get_my_kvsname\ncmd=finalize\n");
    manager.thread = std::thread([] {});
  }
  for (const std::vector<std::string>& answers : std::vector<std::vector<std::string>>{
           {},
           {"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n"},
           {"no such protocol\n", name},
           {begun},
           {begun, "cmd=my_kvsname\n", "\n"},
           {begun, std::string(5000, 'x')}}) {
    Manager manager(answers);
    CHECK(pmi_job_name(manager.ends[0]).empty());
  }
  // Nobody answers; a file; nothing.
  int silent[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, silent) == 0);
  CHECK(pmi_job_name(silent[0], 20).empty());
  ::close(silent[0]);
  ::close(silent[1]);
  int pipe_ends[2];
  REQUIRE(::pipe(pipe_ends) == 0);
  CHECK(pmi_job_name(pipe_ends[1], 20).empty());
  pollfd written{.fd = pipe_ends[0], .events = POLLIN, .revents = 0};
  CHECK(::poll(&written, 1, 0) == 0);  // it was left alone
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
  CHECK(pmi_job_name(-1).empty());
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
