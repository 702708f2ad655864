#include "host/sweep/study.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "device_sim/base/error.h"
#include "host/sweep/chips.h"
#include "host/sweep/machine.h"

namespace gpusim::sweep {
namespace {
namespace fs = std::filesystem;

struct Folder {
  Folder() {
    std::string name = fs::temp_directory_path() / "sweep_test.XXXXXX";
    path = ::mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path / name) << text;
    return path / name;
  }
  fs::path path;
};

template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

std::vector<uint32_t> cores(const std::string& text) { return parse_cores("--cores", text); }

TEST_CASE("numbers of cores") {
  CHECK(cores("1") == std::vector<uint32_t>{1});
  CHECK(cores("1,2,4..64") == std::vector<uint32_t>{1, 2, 4, 8, 16, 32, 64});
  CHECK(cores("64, 1 ,2") == std::vector<uint32_t>{1, 2, 64});
  CHECK(cores("3..20") == std::vector<uint32_t>{3, 6, 12, 20});
  CHECK(cores("10..40+10,40") == std::vector<uint32_t>{10, 20, 30, 40});
  CHECK(cores("5..5") == std::vector<uint32_t>{5});
  CHECK(cores("1,2,4..65536").size() == 17);
  CHECK(cores("8388608..16777216") == std::vector<uint32_t>{8388608, 16777216});
  for (const std::string bad :
       {"", ",", "0", "x", "1,", "4..2", "1..", "..4", "-1", "1.5", "2..8+0", "16777217",
        "99999999999999999999", "1..16777216+1", "4...8"}) {
    INFO(bad);
    CHECK_FALSE(message_of([&] { cores(bad); }).empty());
  }
}

TEST_CASE("arguments that depend on the number of cores") {
  CHECK(filled_in("plain", 8) == "plain");
  CHECK(filled_in("{cores}", 8) == "8");
  CHECK(filled_in("n={cores*1000},{cores/4}!", 8) == "n=8000,2!");
  CHECK(filled_in("{cores/16}", 8) == "1");
  CHECK(filled_in("{core}", 8) == "{core}");
  CHECK(filled_in("{cores*4294967295}", 16777216) == "72057594021150720");
  for (const std::string bad : {"{cores", "{cores+1}", "{cores*}", "{cores*x}", "{cores/0}"}) {
    INFO(bad);
    CHECK_FALSE(message_of([&] { filled_in(bad, 8); }).empty());
  }
}

constexpr const char* kJson = R"({
  "title": "two", "cores": "1,2,4..16", "backend": ["scalar", "simd"], "repeat": 3,
  "energy": ["fermi", "et-soc1"], "options": ["--slice", "100"], "timeout_seconds": 1.5,
  "programs": [
    {"program": "a.elf", "entry": "f", "call": ["@core", "{cores}", 3, -2], "memory": "private"},
    {"program": "/b.elf", "name": "b", "scaling": "weak", "args": ["-n", 7], "cores": [1, 8],
     "sizes": [{"name": "small", "args": [1]}, {"name": "large", "args": ["2"], "cores": 4}]}]})";
constexpr const char* kToml = R"(title = "two"
cores = "1,2,4..16"
backend = ["scalar", "simd"]
repeat = 3
energy = ["fermi", "et-soc1"]
options = ["--slice", "100"]
timeout_seconds = 1.5
[[programs]]
program = "a.elf"
entry = "f"
call = ["@core", "{cores}", 3, -2]
memory = "private"
[[programs]]
program = "/b.elf"
name = "b"
scaling = "weak"
args = ["-n", 7]
cores = [1, 8]
sizes = [{name = "small", args = [1]}, {name = "large", args = ["2"], cores = 4}]
)";

TEST_CASE("a study file, in both languages") {
  const Folder folder;
  const Study json = load_study(folder.write("s.json", kJson));
  const Study toml = load_study(folder.write("s.toml", kToml));
  CHECK(study_json(json) == study_json(toml));
  REQUIRE(json.cases.size() == 3);
  CHECK(json.cases[0].label == "a");
  CHECK(fs::weakly_canonical(json.cases[0].program) == fs::weakly_canonical(folder.path / "a.elf"));
  CHECK(json.cases[0].options == std::vector<std::string>{"--slice", "100", "--entry", "f",
                                                          "--arg=@core", "--arg={cores}", "--arg=3",
                                                          "--arg=-2", "--memory", "private"});
  CHECK(json.cases[1].label == "b/small");
  CHECK(json.cases[1].program == "/b.elf");
  CHECK(json.cases[1].args == std::vector<std::string>{"-n", "7", "1"});
  CHECK(json.cases[1].scaling == Scaling::kWeak);
  CHECK(json.cases[1].cores == std::vector<uint32_t>{1, 8});
  CHECK(json.cases[2].cores == std::vector<uint32_t>{4});
  CHECK(json.cores.size() == 5);
  CHECK(json.backends == std::vector<std::string>{"scalar", "simd"});
  CHECK(json.energy == "fermi,et-soc1");
  CHECK(json.timeout_seconds == 1.5);
  // What is stored is what was meant.
  CHECK(study_json(study_of_json(study_json(json), "here")) == study_json(json));
}

TEST_CASE("mistakes in a study file are named with their place") {
  const Folder folder;
  const auto message = [&](const std::string& name, const std::string& text) {
    return message_of([&] { load_study(folder.write(name, text)); });
  };
  const auto check = [&](const std::string& name, const std::string& text,
                         const std::string& part) {
    const std::string said = message(name, text);
    INFO(text << " -> " << said);
    CHECK(said.find(part) != std::string::npos);
    CHECK(said.find(name) != std::string::npos);
  };
  check("a.json", "", "not JSON");
  check("b.json", "[]", "an object is expected");
  check("c.json", R"({"programs": []})", "must be a list of programs");
  check("d.json", R"({"programms": []})", "unknown key \"programms\"");
  check("e.json", R"({"programs": [{"name": "x"}]})", "programs[0]: \"program\" is missing");
  check("f.json", R"({"programs": [{"program": "x", "scaling": "big"}]})", "\"big\" is not strong");
  check("g.json", R"({"repeat": -1, "programs": [{"program": "x"}]})", "\"repeat\" must be");
  check("h.json", R"({"repeat": 1.5, "programs": [{"program": "x"}]})", "\"repeat\" must be");
  check("i.json", R"({"cores": "1..", "programs": [{"program": "x"}]})", "i.json.cores");
  check("j.json", R"({"programs": [{"program": "x", "args": [{}]}]})", "must be texts or numbers");
  check("k.json", R"({"programs": [{"program": "x", "sizes": [{}]}]})", "sizes[0]: \"name\"");
  check("l.json", R"({"programs": [{"program": 3}]})", "must be a text");
  check("m.json", R"({"timeout_seconds": -1, "programs": [{"program": "x"}]})", "timeout_seconds");
  check("n.toml", "title = \"x\"\nprograms = [", "line 2");
  check("o.toml", "cores = 1979-05-27\n[[programs]]\nprogram = \"x\"\n", "o.toml.cores");
  CHECK(message_of([&] { load_study(folder.path / "none.json"); }).find("none.json") !=
        std::string::npos);
}

TEST_CASE("what a study as a whole may not be") {
  const Folder folder;
  const std::string program = folder.write("p.elf", "x");
  const auto prepared = [&](Study study) { return message_of([&] { prepare(study); }); };
  Study study;
  study.cases = {{"a", program, {}, {}, Scaling::kStrong, {}}};
  CHECK(prepared(study).find("no numbers of cores") != std::string::npos);
  study.cores = {1, 2};
  CHECK(prepared(study).empty());
  Study two = study;
  two.cases.push_back(two.cases[0]);
  CHECK(prepared(two).find("two programs are called a") != std::string::npos);
  for (const std::string option : {"--stats", "--cores=4", "--threads"}) {
    Study own = study;
    own.cases[0].options = {option};
    CHECK(prepared(own).find("itself") != std::string::npos);
  }
  Study target = study;
  target.energy = "nothing";
  CHECK(prepared(target).find("nothing") != std::string::npos);
  Study none = study;
  none.cases[0].program = folder.path / "none";
  CHECK(prepared(none).find("cannot read") != std::string::npos);
  none.cases[0].program = folder.path;
  CHECK(prepared(none).find("cannot read") != std::string::npos);
  Study huge = study;
  huge.repeat = 1000;
  huge.cores = parse_cores("", "1..2000+1");
  CHECK(prepared(huge).find("points") != std::string::npos);
}

TEST_CASE("values of a chip's keys") {
  const auto values = [](const std::string& text) { return varied_key("x", "k", text).values; };
  using List = std::vector<std::string>;
  CHECK(values("16K..128K,1M") == List{"16K", "32K", "64K", "128K", "1M"});
  CHECK(values("3..20,back") == List{"3", "6", "12", "20", "back"});
  CHECK(values("50..200+50") == List{"50", "100", "150", "200"});
  CHECK(values("[0,1],[2,3]") == List{"[0,1]", "[2,3]"});
  CHECK(parse_varied_key("--vary", "a.b=1,2").key == "a.b");
  CHECK(number_of("64K")->value == 65536);
  CHECK(number_of("64K")->is_size);
  CHECK(number_of("1.5")->value == 1.5);
  CHECK_FALSE(number_of("mesh"));
  CHECK_FALSE(number_of("1.5K"));
  for (const std::string bad : {"1..", "..2", "2..1", "0..4", "1..4+0", "1K..4", "1K..4K+1", "a..b",
                                "1,,2", "1,1", "1..2000+1"}) {
    INFO(bad);
    CHECK_FALSE(message_of([&] { values(bad); }).empty());
  }
}

TEST_CASE("a case per chip and combination of values") {
  Study study;
  study.cases = {{"a", "p", {"--slice", "9"}, {}, Scaling::kStrong, {}},
                 {"b", "p", {}, {}, {}, {}}};
  study.cores = {1, 4};
  study.chips = {"tutorial-4"};
  study.vary = {{"shared.size", {"16K", "32K"}}, {"clock_hz", {"1e9", "2e9"}}};
  Study two = study;
  put_on_chips(study);
  REQUIRE(study.cases.size() == 8);
  CHECK(study.cases[1].label == "a/shared.size=16K,clock_hz=2e9");
  CHECK(study.cases[1].family == "a");
  CHECK(study.cases[1].chip_values == std::vector<std::string>{"16K", "2e9"});
  CHECK(study.cases[1].options ==
        std::vector<std::string>{"--slice", "9", "--chip",
                                 "tutorial-4,shared.size=16K,clock_hz=2e9"});
  CHECK(study.cases[4].label == "b/shared.size=16K,clock_hz=1e9");
  CHECK(study_json(study_of_json(study_json(study), "here")) == study_json(study));
  two.chips = {"tutorial-4", "bus-8,line_bytes=32"};
  two.vary.clear();
  put_on_chips(two);
  REQUIRE(two.cases.size() == 4);
  CHECK(two.cases[0].label == "a/tutorial-4");
  CHECK(two.cases[1].label == "a/bus-8,line_bytes=32");
  Study plain;
  plain.cases = {{"a", "p", {}, {}, {}, {}}};
  plain.cores = {2};
  plain.chips = {"tutorial-4,line_bytes=32"};
  put_on_chips(plain);
  CHECK(plain.cases[0].label == "a");
}

TEST_CASE("SHA-256 is the standard's") {  // FIPS 180-4's example
  CHECK(sha256_of("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_CASE("commands can be pasted into a shell") {
  CHECK(quoted("--cores=4") == "--cores=4");
  CHECK(quoted("a b") == "'a b'");
  CHECK(quoted("it's") == "'it'\\''s'");
  CHECK(quoted("&x") == "'&x'");
  CHECK(quoted("") == "''");
  CHECK(quoted("{cores}") == "'{cores}'");
}

}  // namespace
}  // namespace gpusim::sweep
