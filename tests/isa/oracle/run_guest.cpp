#include "tests/isa/oracle/run_guest.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace gpusim::oracle {

File::File() : file(std::tmpfile()) {
  if (!file) throw std::runtime_error(std::string("oracle: temporary file: ") + strerror(errno));
}

void run_guest(const std::vector<std::string>& command, File& in, File& out) {
  std::rewind(in.file);
  std::vector<char*> arguments;
  for (const std::string& a : command) arguments.push_back(const_cast<char*>(a.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("oracle: fork failed");
  if (child == 0) {
    dup2(fileno(in.file), STDIN_FILENO);
    dup2(fileno(out.file), STDOUT_FILENO);
    execvp(arguments[0], arguments.data());
    std::perror(arguments[0]);
    _exit(127);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw std::runtime_error("oracle: the guest program failed under " + command[0]);
  std::rewind(out.file);
}

}  // namespace gpusim::oracle
