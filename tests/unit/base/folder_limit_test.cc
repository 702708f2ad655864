#include "device_sim/base/folder_limit.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <chrono>
#include <fstream>
#include <string>

using namespace gpusim;
namespace fs = std::filesystem;
using namespace std::chrono_literals;

TEST_CASE("a folder keeps what was written last") {
  std::string name = (fs::temp_directory_path() / "gpusim_limit_XXXXXX").string();
  REQUIRE(::mkdtemp(name.data()) != nullptr);
  const fs::path folder = name;
  // Hours ago: 5, a folder of two files; 4 .. 1, files.
  const auto age = [&](const fs::path& path, int hours) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(hours));
  };
  const auto put = [&](const fs::path& file) { std::ofstream(file) << std::string(1000, 'x'); };
  fs::create_directories(folder / "headers/below");
  put(folder / "headers/below/a");
  put(folder / "headers/b");
  age(folder / "headers", 5);
  for (int hours = 1; hours <= 4; ++hours) {
    const fs::path file = folder / std::to_string(hours);
    put(file);
    age(file, hours);
  }
  const auto has = [&](const char* entry) { return fs::exists(folder / entry); };

  limit_folder(folder, 6000, 0s);  // as much as there is
  CHECK(has("headers"));
  limit_folder(folder, 5999, 0s);
  CHECK(!has("headers"));
  CHECK(has("4"));
  limit_folder(folder, 2500, 0s);
  CHECK(!has("4"));
  CHECK(!has("3"));
  CHECK(has("2"));
  CHECK(has("1"));
  limit_folder(folder, 0, 90min);
  CHECK(!has("2"));
  CHECK(has("1"));  // not long ago
  limit_folder(folder, 0, 0s);
  CHECK(!has("1"));
  fs::remove_all(folder);
  limit_folder(folder, 0, 0s);  // there is none
}
