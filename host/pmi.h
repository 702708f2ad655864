// The name of a launch by Hydra, the mpiexec of MPICH and Intel MPI. Its environment variables tell
// ranks apart (PMI_RANK), but not two launches from each other; its process manager does.
#pragma once
#include <string>

namespace gpusim::host {

// By `fd`, the socket that PMI_FD names (PMI-1's wire protocol; P. Balaji et al., "PMI: A Scalable
// Parallel Process-Management Interface for Extreme-Scale Systems", EuroMPI 2010). The same for all
// ranks, another one for each launch; "" where `fd` is no such socket or does not answer within
// `timeout_ms` per line. Works once: the process manager then takes this process for one that has
// left MPI, so that it may end as it likes.
std::string pmi_job_name(int fd, int timeout_ms = 10000);

}  // namespace gpusim::host
