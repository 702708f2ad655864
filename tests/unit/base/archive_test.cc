#include "device_sim/base/archive.h"

#include <doctest/doctest.h>

using namespace gpusim;

namespace {

struct Part {
  uint32_t number = 0;
  bool flag = false;
  std::string name;
  std::vector<uint16_t> words;
  std::vector<std::string> list;
  std::optional<double> maybe;
  bool operator==(const Part&) const = default;
};

template <class Archive>
void describe(Archive& a, Part& p) {
  a.value(p.number);
  a.value(p.flag);
  a.text(p.name);
  a.plain_array(p.words, 3);
  a.list(p.list, kAnyCount, [&](std::string& s) { a.text(s); });
  describe_optional(a, p.maybe, [&](double& d) { a.value(d); });
}

std::vector<uint8_t> bytes_of(Part part) {
  ByteSink sink;
  ArchiveWriter writer(sink);
  describe(writer, part);
  return sink.bytes;
}

Part part_of(const std::vector<uint8_t>& bytes) {
  ByteSource source(bytes, "x");
  ArchiveReader reader(source);
  Part part;
  describe(reader, part);
  CHECK(source.left() == 0);
  return part;
}

}  // namespace

TEST_CASE("what is written is read") {
  for (const Part& part : {Part{}, Part{7, true, "seven", {1, 2, 3}, {"a", "", "b"}, 0.5}})
    CHECK(part_of(bytes_of(part)) == part);
}

TEST_CASE("every end that comes too early, and tables that are too long") {
  const std::vector<uint8_t> whole = bytes_of({7, true, "seven", {1, 2, 3}, {"a", "b"}, 0.5});
  for (size_t size = 0; size < whole.size(); ++size)
    CHECK_THROWS_AS(part_of({whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size)}), Error);
  CHECK_THROWS_WITH_AS(part_of(bytes_of({7, true, "", {1, 2, 3, 4}, {}, {}})),
                       "x (a table is too long)", Error);
  std::vector<uint8_t> wild = whole;
  wild[12] = 0xff;  // of the name's length: longer than any memory
  CHECK_THROWS_WITH_AS(part_of(wild), "x (a table is longer than the file)", Error);
}
