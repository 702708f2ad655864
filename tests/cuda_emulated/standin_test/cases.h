// What the kernels of the stand-in's own tests do, by name.
#pragma once
#include <string>
#include <vector>

// True: as it should be.
struct SoundCase {
  const char* name;
  bool (*run)();
};
std::vector<SoundCase> sound_cases();

// Goes wrong; the text of the error that a call returned, or the process ends.
struct FaultyCase {
  const char* name;
  std::string (*run)();
  std::vector<std::string> expected;  // in the report
};
std::vector<FaultyCase> faulty_cases();
