// The container of checkpoints: what was written comes back, and nothing else does.
#include "host/checkpoint/chunk_file.h"

#include <doctest/doctest.h>

#include <random>

#include "device_sim/base/error.h"
#include "tests/unit/checkpoint/temporary_folder.h"

namespace gpusim::host {
namespace {

constexpr uint32_t kOne = section_name("ONE "), kTwo = section_name("TWO "),
                   kEmpty = section_name("NONE");

std::vector<uint8_t> random_bytes(size_t size, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> bytes(size);
  for (uint8_t& b : bytes) b = static_cast<uint8_t>(random() % 7);
  return bytes;
}

void write_file(const std::string& path, size_t one, size_t two) {
  ChunkWriter file(OutputFile("--checkpoint", path));
  const std::vector<uint8_t> a = random_bytes(one, 1), b = random_bytes(two, 2);
  file.begin(kOne);
  for (size_t done = 0; done < a.size(); done += 1000)
    file.write(a.data() + done, std::min<size_t>(1000, a.size() - done));
  file.begin(kEmpty);
  file.begin(kTwo);
  file.write(b.data(), b.size());
  file.finish();
}

// True if all of it was there.
bool read_file(const std::string& path, size_t one, size_t two) {
  ChunkReader file(path);
  std::vector<uint8_t> a(one), b(two);
  file.begin(kOne);
  file.read(a.data(), a.size());
  file.begin(kEmpty);
  file.begin(kTwo);
  file.read(b.data(), b.size());
  file.begin(kEndSection);
  return a == random_bytes(one, 1) && b == random_bytes(two, 2);
}

TEST_CASE("sections come back as they were") {
  const TemporaryFolder folder;
  const std::string path = folder.path / "file";
  for (const size_t one : {size_t{0}, size_t{1}, size_t{1} << 20, size_t{3333333}})
    for (const size_t two : {size_t{1}, size_t{70000}}) {
      write_file(path, one, two);
      CHECK(read_file(path, one, two));
      CHECK_THROWS_AS(read_file(path, one + 1, two), Error);
      if (one > 0) CHECK_THROWS_AS(read_file(path, one - 1, two), Error);
      CHECK_FALSE(std::filesystem::exists(path + ".tmp"));
    }
}

TEST_CASE("a file of which any bit was changed, or any end is missing, is refused") {
  const TemporaryFolder folder;
  const std::string path = folder.path / "file";
  write_file(path, 3000, 1500);
  const std::vector<uint8_t> good = bytes_of(path);
  REQUIRE(good.size() > 1000);
  for (size_t at = 0; at < good.size(); ++at) {
    CAPTURE(at);
    std::vector<uint8_t> bad = good;
    bad[at] ^= static_cast<uint8_t>(1 << at % 8);
    put_bytes(path, bad);
    CHECK_THROWS_AS(ChunkReader{path}, Error);
    put_bytes(path, {good.begin(), good.begin() + static_cast<std::ptrdiff_t>(at)});
    CHECK_THROWS_AS(ChunkReader{path}, Error);
  }
  std::vector<uint8_t> longer = good;
  longer.push_back(0);
  put_bytes(path, longer);
  CHECK_THROWS_AS(ChunkReader{path}, Error);
  put_bytes(path, good);
  CHECK(read_file(path, 3000, 1500));
}

TEST_CASE("what was there stays until the new one is whole") {
  const TemporaryFolder folder;
  const std::string path = folder.path / "file";
  write_file(path, 100, 100);
  {
    ChunkWriter file(OutputFile("--checkpoint", path));
    file.begin(kOne);
    file.write("x", 1);
    CHECK(read_file(path, 100, 100));
    CHECK_THROWS_AS(ChunkWriter(OutputFile("--checkpoint", path)), Error);  // two runs at a time
  }
  CHECK(read_file(path, 100, 100));
  CHECK_FALSE(std::filesystem::exists(path + ".tmp"));
  put_bytes(path + ".tmp", {1, 2, 3});  // left behind by a run that was killed
  write_file(path, 200, 100);
  CHECK(read_file(path, 200, 100));
  CHECK_THROWS_AS(OutputFile("--checkpoint", folder.path / "none" / "file"), Error);
}

}  // namespace
}  // namespace gpusim::host
