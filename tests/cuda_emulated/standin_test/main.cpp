// Tests of the stand-in for the CUDA runtime. `--case NAME` runs one faulty case in this process,
// whose report and status a test looks at from outside.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "standin_test/cases.h"

std::vector<std::string> refused_launches();
bool has_limits_of_its_chip();

namespace {

std::string program;

struct Ended {
  int status;
  std::string said;
};
Ended run_case(const std::string& name) {
  const std::string command = "exec '" + program + "' --case '" + name + "' 2>&1";
  FILE* const pipe = popen(command.c_str(), "r");
  std::string said;
  char part[4096];
  while (const size_t n = std::fread(part, 1, sizeof part, pipe)) said.append(part, n);
  return {WEXITSTATUS(pclose(pipe)), said};
}

TEST_CASE("kernels run as CUDA promises") {
  for (const SoundCase& c : sound_cases()) {
    CAPTURE(std::string(c.name));
    CHECK(c.run());
  }
}

TEST_CASE("faults are reported") {
  for (const FaultyCase& c : faulty_cases()) {
    CAPTURE(std::string(c.name));
    const Ended ended = run_case(c.name);
    CHECK(ended.status == 99);
    for (const std::string& text : c.expected) {
      CAPTURE(ended.said);
      CHECK_MESSAGE(ended.said.find(text) != std::string::npos, text);
    }
  }
}

TEST_CASE("launches beyond a limit are refused") {
  const auto texts = refused_launches();
  CHECK(texts[0].find("cudaErrorLaunchOutOfResources") != std::string::npos);
  CHECK(texts[1] != "");
  CHECK(texts[2].find("cudaErrorInvalidConfiguration") != std::string::npos);
}

TEST_CASE("limits are those of the chip") { CHECK(has_limits_of_its_chip()); }

}  // namespace

int main(int argc, char** argv) {
  program = argv[0];
  if (argc == 3 && std::strcmp(argv[1], "--case") == 0) {
    for (const FaultyCase& c : faulty_cases())
      if (argv[2] == std::string(c.name)) std::printf("%s\n", c.run().c_str());
    return 0;
  }
  return doctest::Context(argc, argv).run();
}
