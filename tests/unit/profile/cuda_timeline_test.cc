// What processes of CUDA programs recorded, also where they were cut short.
#include "host/cli/cuda_timeline.h"

#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "device_sim/base/child_session.h"

using namespace gpusim;
using nlohmann::json;

namespace {

constexpr const char* kHead = R"({"process":7,"program":"p"}
{"thread":1,"name":"thread 1"}
{"call":1,"thread":1,"name":"cudaLaunchKernel","ns":1000}
)";
constexpr const char* kWork =
    R"x({"work":2,"stream":3,"call":1,"submitted_ns":1500,"type":"kernel",)x"
    R"x("name":"k()","args":{},"ns":2000})x"
    "\n";

struct Recorded {
  SessionFolder folder{"gpusim-test"};
  void add(const std::string& name, const std::string& text) const {
    std::ofstream(folder.path() + "/" + name, std::ios::binary) << text;
  }
  json picture() const { return json::parse(host::cuda_timeline_json(folder.path(), "p")); }
};

std::vector<json> slices_of(const json& picture) {
  std::vector<json> found;
  for (const json& e : picture.at("traceEvents"))
    if (e.at("ph") == "X") found.push_back(e);
  return found;
}

}  // namespace

TEST_CASE("a process that was killed: what had begun ends with the last line") {
  const Recorded r;
  r.add("7-0.events", std::string(kHead) + kWork + "{\"end\":1,\"ns\":2500}\n{\"end\":2,\"n" +
                          std::string(100, '\0'));
  const json picture = r.picture();
  const std::vector<json> slices = slices_of(picture);
  REQUIRE(slices.size() == 2);
  CHECK(slices[0].at("name") == "cudaLaunchKernel");
  CHECK(slices[0].at("ts") == 0.0);
  CHECK(slices[0].at("dur") == 1.5);
  CHECK_FALSE(slices[0].at("args").contains("unfinished"));
  CHECK(slices[1].at("name") == "k()");
  CHECK(slices[1].at("ts") == 1.0);
  CHECK(slices[1].at("dur") == 0.5);
  CHECK(slices[1].at("args").at("unfinished") == true);
  CHECK(picture.at("otherData").at("complete") == true);
}

TEST_CASE("lines that the program damaged are left out, and that is said") {
  const Recorded r;
  r.add("7-0.events", std::string(kHead) + "\x01\xff{{{\n{\"work\":3,\"name\":\"half\"}\n[1]\n5\n" +
                          kWork + "{\"end\":2,\"ns\":2500}\n{\"end\":99,\"ns\":2600}\n");
  const json picture = r.picture();
  CHECK(picture.at("otherData").at("complete") == false);
  const std::vector<json> slices = slices_of(picture);
  REQUIRE(slices.size() == 2);
  CHECK(slices[1].at("name") == "k()");
}

TEST_CASE("a log that could not be written is said to lack something") {
  const Recorded r;
  r.add("7-0.events", std::string(kHead) + kWork);
  r.add("7-0.events.lost", "");
  const json picture = r.picture();
  CHECK(picture.at("otherData").at("complete") == false);
  CHECK(slices_of(picture).size() == 2);
}

TEST_CASE("processes have tracks of their own, in the order of their begins") {
  const Recorded r;
  r.add("9-0.events", R"({"process":9,"program":"late"}
{"call":1,"thread":1,"name":"cudaFree","ns":9000,"end_ns":9100,"args":{}}
)");
  r.add("7-0.events", std::string(kHead) + kWork);
  r.add("8-0.events", "{\"process\":8,\"program\":\"idle\"}\n");
  r.add("8.json", "not one of these");
  const json picture = r.picture();
  std::vector<std::string> names;
  std::set<std::pair<int, int>> tracks;
  for (const json& e : picture.at("traceEvents")) {
    if (e.at("name") == "process_name") names.push_back(e.at("args").at("name"));
    if (e.at("ph") == "X") tracks.emplace(e.at("pid"), e.at("tid"));
  }
  CHECK(names == std::vector<std::string>{"p (7): calls", "p (7): streams", "late (9): calls"});
  CHECK(tracks.size() == 3);
}

TEST_CASE("nothing was recorded") {
  const json picture = Recorded().picture();
  CHECK(picture.at("traceEvents").empty());
  CHECK(picture.at("otherData").at("complete") == true);
}
