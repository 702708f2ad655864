// What started this process together with others: mpirun or mpiexec (Open MPI, MPICH, Intel MPI),
// srun, a job array of Slurm, or nobody. Their environment variables say so; no library of theirs
// is needed (docs/adr/0049-studies-on-many-machines.md).
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace gpusim::host {

struct Launch {
  // kRanks: all begin together, and their launcher waits for all (mpirun, srun). kArray: tasks of a
  // job array, which begin as there is room, each by itself.
  enum class Kind { kAlone, kRanks, kArray };
  Kind kind = Kind::kAlone;
  // The same for all that were started together; of letters of file names. Of ranks, empty:
  // variables do not tell (find_session).
  std::string session;
  std::string name;     // for messages: "rank 2 of 4", "task 3 of job 17", "process 4711"
  uint32_t number = 0;  // rank, or number in the array
  // Which of how many, from 0 on; `of` 0: not known, or one alone.
  uint32_t index = 0, of = 0;
  uint32_t threads = 1;  // of the host: this process's share
  std::string node;      // its machine's name

  // Whether it may make the study's folder: of ranks one does, and others wait for it.
  bool may_open() const { return kind != Kind::kRanks || number == 0; }
};

// `variable`: as getenv; `allowed`, `online`: processors that this process may use, and all that
// there are.
Launch launch_of(const std::function<const char*(const char*)>& variable, uint32_t allowed,
                 uint32_t online);
Launch this_launch();
// Asks the launcher, if this is a rank of an MPI whose variables do not tell two launches from each
// other. Once per process. Throws Error where it does not answer.
void find_session(Launch& launch);

// For what is shared out evenly: the part's number, from 1 on, and how many there are. Throws Error
// where nothing says it.
std::pair<uint32_t, uint32_t> part_of(const Launch& launch);

}  // namespace gpusim::host
