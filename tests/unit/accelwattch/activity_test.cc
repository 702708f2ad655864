#include "energy/accelwattch/activity.h"

#include <doctest/doctest.h>

#include <cstdio>
#include <fstream>

#include "device_sim/base/error.h"
#include "energy/accelwattch/prediction.h"

using namespace gpusim;
using namespace gpusim::accelwattch;

namespace {

double count(const Model& m, const KernelActivity& k, const char* counter) {
  return k.counts[static_cast<size_t>(m.chip->find_counter(counter))];
}

ActivityFile counters(const Model& m, std::string_view text, const ActivityOptions& o = {}) {
  return read_counters(parse_csv(text, "a.csv"), m, o);
}

std::string message(std::string_view text) {
  try {
    counters(find_model("gv100/hw"), text);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// What both forms of the export below say of the kernel saxpy.
const char* const kRaw =
    "==PROF== Connected to process 4711 (/home/me/app)\n"
    "==PROF== Profiling \"saxpy\" - 0: 0%....50%....100% - 9 passes\n"
    "==PROF== Disconnected from process 4711\n"
    "\"ID\",\"Process ID\",\"Kernel Name\",\"sm__cycles_elapsed.sum\",\"sm__inst_executed.sum\","
    "\"l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_miss.sum\",\"dram__sectors_read.sum\","
    "\"lts__t_sectors_srcunit_tex_op_read_lookup_miss.sum\","
    "\"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum\","
    "\"smsp__sass_thread_inst_executed_op_fp32_pred_on.sum\","
    "\"smsp__sass_thread_inst_executed_op_integer_pred_on.sum\","
    "\"smsp__cycles_active.avg.pct_of_peak_sustained_elapsed\","
    "\"smsp__thread_inst_executed_per_inst_executed.ratio\"\n"
    "\"\",\"\",\"\",\"cycle\",\"inst\",\"sector\",\"sector\",\"sector\",\"inst\",\"inst\",\"inst\","
    "\"%\",\"\"\n"
    "\"0\",\"4711\",\"saxpy(float*, "
    "float)\",\"8,000,000\",\"1,000\",\"400\",\"300\",\"200\",\"32,000\","
    "\"33,000\",\"64,000\",\"75\",\"31.5\"\n"
    "\"1\",\"4711\",\"saxpy(float*, "
    "float)\",\"16,000,000\",\"3,000\",\"400\",\"300\",\"200\",\"32,000\","
    "\"33,000\",\"64,000\",\"75\",\"31.5\"\n";

}  // namespace

TEST_CASE("counters by their own names and by those of hw_perf.csv") {
  const Model m = find_model("gv100/hw");
  const ActivityFile f = counters(
      m,
      "Benchmark,Kernel,L1_RH,DRAM_Rd,NOC,INT_ACC,Pipeline_Duty,Num_Idle_SMs,Elapsed_Cycles,lanes,"
      "Chip Voltage,measured_W\n"
      "b,k,10,20,30,40,0.25,20,1447000,24,0.9,120\n");
  REQUIRE(f.kernels.size() == 1);
  const KernelActivity& k = f.kernels[0];
  CHECK(k.name == "b:k");
  CHECK(count(m, k, "DC_RH") == 10);
  CHECK(count(m, k, "MEM_RD") == 20);
  CHECK(count(m, k, "NOC_A") == 30);
  CHECK(count(m, k, "PIPE_A") == doctest::Approx(0.25 * 1447000));
  CHECK(k.time.value() == doctest::Approx(1e-3));
  CHECK(k.active_sms == 60);
  CHECK(k.lanes == 24);
  CHECK(k.voltage == 0.9);
  CHECK(k.measured == Watts(120));
  CHECK(k.mix == Mix::kIntAdd);
  REQUIRE(f.notes.size() == 1);
  CHECK(f.notes[0].find("TOT_INST") != std::string::npos);
}

TEST_CASE("time, clock and voltage") {
  const Model m = find_model("gv100/hw");
  const char* text = "kernel,INT_ACC,cycles\nk,1,1000000\n";
  CHECK(counters(m, text, {.clock = Hertz(1e9)}).kernels[0].time == Seconds(1e-3));
  const ActivityFile slow =
      counters(m, text, {.clock = Hertz(1447e6 / 2), .voltage_follows_clock = true});
  CHECK(slow.kernels[0].voltage == doctest::Approx(0.5));
  const ActivityFile each = counters(m, "kernel,INT_ACC,time_us,frequency_MHz\nk,1,250,1000\n",
                                     {.voltage_follows_clock = true});
  CHECK(each.kernels[0].time.value() == doctest::Approx(250e-6));
  CHECK(each.kernels[0].voltage == doctest::Approx(1000.0 / 1447));
}

TEST_CASE("a mix may be given, and is unknown without counters of units") {
  const Model m = find_model("gv100/hw");
  CHECK(counters(m, "kernel,L1_RH,time_s,mix\nk,1,1,int_fp_tensor\n").kernels[0].mix ==
        Mix::kIntFpTensor);
  CHECK(counters(m, "kernel,L1_RH,time_s\nk,1,1\n").kernels[0].mix == Mix::kOther);
  CHECK(counters(m, "kernel,INT_ACC,time_s\nk,0,1\n").kernels[0].mix == Mix::kLight);
}

TEST_CASE("files of counters that cannot be right are refused") {
  CHECK(
      message("kernel,INT_ACC\nk,1\n") ==
      "a.csv: there is no column of time: Elapsed_Cycles, time_s, time_ms or time_us; the columns "
      "are: kernel, INT_ACC");
  CHECK(message("kernel,INT_ACCC,time_s\nk,1,1\n")
            .find("INT_ACCC is no counter of gv100; counters") != std::string::npos);
  CHECK(message("kernel,time_s\nk,1\n").find("no column is a counter") != std::string::npos);
  CHECK(message("kernel,INT_ACC,time_s\nk,-1,1\n") ==
        "a.csv: line 2: column INT_ACC: -1 is negative");
  CHECK(message("kernel,INT_ACC,time_s\nk,nan,1\n") ==
        "a.csv: line 2: column INT_ACC: nan is not finite");
  CHECK(message("kernel,INT_ACC,time_s\nk,1,0\n") == "a.csv: line 2: the kernel takes no time");
  CHECK(message("kernel,INT_ACC,time_s,lanes\nk,1,1,33\n") ==
        "a.csv: line 2: 33 active lanes; a warp has 32");
  CHECK(message("kernel,INT_ACC,time_s,idle_sms\nk,1,1,81\n") ==
        "a.csv: line 2: -1 active SMs; gv100 has 80");
  CHECK(message("kernel,INT_ACC,time_s,Pipeline_Duty\nk,1,1,25\n") ==
        "a.csv: line 2: Pipeline_Duty is 25; it is a share of 1");
  CHECK(message("kernel,INT_ACC,time_s,time_ms\nk,1,1,1\n") ==
        "a.csv: columns time_s and time_ms say the same");
  CHECK(message("kernel,INT_ACC,time_s,mix\nk,1,1,fast\n").find("there is no mix fast") !=
        std::string::npos);
  CHECK(message("kernel,INT_ACC,time_s,start_s\nk,1,1,5\nk,1,1,4\n") ==
        "a.csv: line 3: slices must come in the order of time");
}

TEST_CASE("Nsight Compute, a column per metric") {
  const Model m = find_model("gv100/hw");
  const ActivityFile f = read_nsight(kRaw, "n.csv", m);
  REQUIRE(f.kernels.size() == 1);
  const KernelActivity& k = f.kernels[0];
  CHECK(k.name == "saxpy(float*, float)");
  CHECK(k.time.value() == doctest::Approx(150000 / 1447e6));
  CHECK(count(m, k, "TOT_INST") == 2000);  // launches are averaged
  CHECK(count(m, k, "DC_RM") == 400);
  CHECK(count(m, k, "MEM_RD") == 300);
  CHECK(count(m, k, "NOC_A") == 400);
  CHECK(count(m, k, "FP_MUL_ACC") == 32000);
  CHECK(count(m, k, "FP_ACC") == 1000);
  CHECK(count(m, k, "INT_ACC") == 64000);
  CHECK(k.active_sms == doctest::Approx(60));
  CHECK(k.lanes == 32);
  CHECK(k.mix == Mix::kIntFp);
  CHECK(f.notes[0] == "2 launches of 1 kernels; launches of a kernel are averaged");
}

TEST_CASE("Nsight Compute, a row per metric, in units of its choice") {
  const Model m = find_model("gv100/hw");
  const ActivityFile f = read_nsight(
      "==PROF== Disconnected\n"
      "\"ID\",\"Kernel Name\",\"Section Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n"
      "\"0\",\"k\",\"Speed\",\"Duration\",\"usecond\",\"1,447\"\n"
      "\"0\",\"k\",\"Command line profiler "
      "metrics\",\"gpu__time_duration.sum\",\"usecond\",\"250.5\"\n"
      "\"0\",\"k\",\"Command line profiler metrics\",\"sm__inst_executed.sum\",\"inst\",\"1,500\"\n"
      "\"1\",\"l\",\"Command line profiler metrics\",\"gpu__time_duration.sum\",\"msecond\",\"2\"\n"
      "\"1\",\"l\",\"Command line profiler metrics\",\"sm__inst_executed.sum\",\"Kinst\",\"7\"\n",
      "n.csv", m);
  REQUIRE(f.kernels.size() == 2);
  CHECK(f.kernels[0].time.value() == doctest::Approx(250.5e-6));
  CHECK(count(m, f.kernels[0], "TOT_INST") == 1500);
  CHECK(f.kernels[1].time.value() == doctest::Approx(2e-3));
  CHECK(count(m, f.kernels[1], "TOT_INST") == 7000);
}

TEST_CASE("bad exports of Nsight Compute") {
  const Model m = find_model("gv100/hw");
  const auto error = [&](const std::string& text) -> std::string {
    try {
      read_nsight(text, "n.csv", m);
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  };
  CHECK(error("==PROF== nothing\n") == "n.csv has no line with the column Kernel Name");
  CHECK(error("ID,Kernel Name,sm__inst_executed.sum\n1,k,5\n").find("kernel k has no time") !=
        std::string::npos);
  CHECK(error("ID,Kernel Name,sm__cycles_elapsed.sum\n1,k,-5\n") ==
        "n.csv: line 2: metric sm__cycles_elapsed.sum: -5 is negative");
  CHECK(error("ID,Kernel Name,sm__cycles_elapsed.sum\n1,k,nan\n") ==
        "n.csv: line 2: metric sm__cycles_elapsed.sum: nan is not finite");
  CHECK(error("ID,Kernel Name,sm__cycles_elapsed.sum\n1,k,n/a\n") ==
        "n.csv: line 2: metric sm__cycles_elapsed.sum: n/a is no number");
}

TEST_CASE("hybrid: some counters from another file") {
  const Model m = find_model("gv100/hybrid");
  ActivityFile hw = counters(m, "kernel,INT_ACC,L2_RH,time_s\na,1,10,1\nb,2,20,1\n");
  const ActivityFile sw = counters(m, "kernel,INT_ACC,L2_RH,time_s\nb,7,200,2\na,7,100,2\n");
  replace_counters(hw, sw, m, {"L2_RH"});
  CHECK(count(m, hw.kernels[0], "L2_RH") == 100);
  CHECK(count(m, hw.kernels[1], "L2_RH") == 200);
  CHECK(count(m, hw.kernels[1], "INT_ACC") == 2);
  CHECK_THROWS_AS(replace_counters(hw, sw, m, {"L9"}), Error);
  hw.kernels[0].name += "c";
  CHECK_THROWS_WITH(replace_counters(hw, sw, m, {"L2_RH"}), "kernel ac is not in the other file");
}

TEST_CASE("tallies of a run") {
  const std::string path = "tallies_test.json";
  std::ofstream(path) <<
      R"({"isa": "a64", "backend": "simd", "device": "x", "cores": 64, "guest_instructions": 64000,
          "classes": {"integer_arithmetic": 32000, "integer_division": 0, "integer_logical": 0,
                      "integer_comparison": 0, "float_arithmetic": 16000, "float_division": 0,
                      "float_comparison": 0, "double_arithmetic": 0, "double_division": 0,
                      "special_function": 0, "on_chip_memory": 0, "off_chip_memory": 8000,
                      "control_flow": 8000, "parallelism": 0, "other": 0},
          "micro_ops": 1, "seconds": 1, "mips": 1, "exit_status": 0, "faults": []})";
  const Model m = find_model("gv100/ptx-sim");
  const ActivityFile f = read_tallies(path, m, {.clock = Hertz(1e9), .ipc = 2});
  std::remove(path.c_str());
  const KernelActivity& k = f.kernels.at(0);
  CHECK(k.active_sms == 2);  // two warps
  CHECK(count(m, k, "TOT_INST") == 2000);
  CHECK(count(m, k, "INT_ACC") == 40000);
  CHECK(count(m, k, "FP_ACC") == 16000);
  CHECK(count(m, k, "DC_RH") == 1000);
  CHECK(k.time.value() == doctest::Approx(2000 / (2 * 2) / 1e9));
  CHECK(k.mix == Mix::kIntFp);
  CHECK(power(m, k).total() > Watts(32));
}

TEST_CASE("opcodes of kernels") {
  const std::string path = "opcodes_test.json";
  std::ofstream(path) << R"({"isa": "ptx", "kernels": [
      {"name": "k", "launches": 2, "threads": 128, "instructions": 992, "opcodes":
        {"add.s32": 64, "mul.wide.s32": 32, "mad.lo.s32": 96, "fma.rn.f32": 160, "div.rn.f32": 32,
         "fma.rn.f64": 64, "ex2.approx.ftz.f32": 32, "setp.lt.f64": 32, "ld.param.u64": 64,
         "ld.global.v4.f32": 128, "st.global.f32": 64, "ld.shared.f32": 96,
         "atom.global.add.u32": 32,
         "bar.sync": 64, "ret": 32}},
      {"name": "never", "launches": 1, "threads": 32, "instructions": 0, "opcodes": {}}]})";
  const Model m = find_model("gv100/ptx-sim");
  const ActivityFile f = read_tallies(path, m, {.clock = Hertz(1e9), .ipc = 2});
  std::remove(path.c_str());
  REQUIRE(f.kernels.size() == 1);
  const KernelActivity& k = f.kernels[0];
  CHECK(k.name == "k");
  CHECK(k.active_sms == 2);  // two warps a launch
  CHECK(count(m, k, "TOT_INST") == 992.0 / 32);
  CHECK(count(m, k, "FP_INT") == (992 - 64 - 128 - 64 - 96 - 32) / 32.0);
  CHECK(count(m, k, "INT_ACC") == 64 + 32);  // add, ret
  CHECK(count(m, k, "INT_MUL_ACC") == 32);
  CHECK(count(m, k, "INT_MUL32_ACC") == 96);
  CHECK(count(m, k, "FP_MUL_ACC") == 160);
  CHECK(count(m, k, "FP_DIV_ACC") == 32);
  CHECK(count(m, k, "DP_MUL_ACC") == 64);
  CHECK(count(m, k, "DP_ACC") == 32);
  CHECK(count(m, k, "FP_EXP_ACC") == 32);
  CHECK(count(m, k, "CC_H") == 2);
  CHECK(count(m, k, "SHRD_ACC") == 3);
  CHECK(count(m, k, "DC_RH") == 16);  // four sectors each
  CHECK(count(m, k, "DC_WH") == 8);
  CHECK(count(m, k, "L2_RH") == 4);
  CHECK(k.time.value() == doctest::Approx(31.0 / (2 * 2) / 1e9));
  CHECK(power(m, k).total() > Watts(32));
}

TEST_CASE("what a profile of kernels counted takes the place of assumptions") {
  const std::string path = "profiled_test.json";
  const std::string kernel =
      R"({"isa": "ptx", "kernels": [
      {"name": "k", "launches": 1, "threads": 128, "instructions": 640, "opcodes":
        {"fma.rn.f32": 320, "ld.global.v2.f32": 96, "st.global.f32": 64, "ld.local.u32": 32,
         "ld.shared.f32": 64, "atom.global.add.u32": 64},
       "profile": {"instructions": 640, "warp_instructions": 40, "lanes_per_warp": 16,
         "global_accesses": 14, "sectors": 100, "store_sectors": 30, "atomic_sectors": 10,
         "shared_accesses": 7, "bank_conflicts": 0, "lines": []%}}]})";
  const auto read = [&](const std::string& more) {
    std::string text = kernel;
    text.replace(text.find('%'), 1, more);
    std::ofstream(path) << text;
    const Model m = find_model("gv100/ptx-sim");
    const ActivityFile f = read_tallies(path, m, {.clock = Hertz(1e9), .ipc = 2});
    std::remove(path.c_str());
    REQUIRE(f.kernels.size() == 1);
    return f.kernels[0];
  };
  const Model m = find_model("gv100/ptx-sim");
  const KernelActivity k = read("");
  CHECK(k.lanes == 16);
  CHECK(count(m, k, "TOT_INST") == 40);
  CHECK(count(m, k, "REG_RD") == 3 * 320 + 96 + 2 * 64 + 32 + 64 + 2 * 64);
  CHECK(count(m, k, "REG_WR") == 320 + 2 * 96 + 32 + 64 + 64);
  CHECK(count(m, k, "DC_RH") == 60 + 4);  // and four sectors of each of the local 32 lanes
  CHECK(count(m, k, "DC_WH") == 30);
  CHECK(count(m, k, "L2_RH") == 10);
  CHECK(count(m, k, "SHRD_ACC") == 4);
  const KernelActivity cached = read(R"(, "caches": {"line_bytes": 64, "accesses": 160,
      "off_chip_accesses": 40, "memory_reads": 5, "memory_writes": 6, "levels": [
        {"name": "L1", "reads": 30, "read_misses": 12, "writes": 15, "write_misses": 15},
        {"name": "L2", "reads": 12, "read_misses": 5, "writes": 20, "write_misses": 1}]})");
  CHECK(count(m, cached, "DC_RH") == 36 + 4);  // a line has two sectors
  CHECK(count(m, cached, "DC_RM") == 24);
  CHECK(count(m, cached, "DC_WM") == 30);
  CHECK(count(m, cached, "L2_RH") == 14);
  CHECK(count(m, cached, "L2_RM") == 10);
  CHECK(count(m, cached, "L2_WH") == 38);
  CHECK(count(m, cached, "NOC_A") == 2 * 64);
  CHECK(count(m, cached, "MEM_RD") == 10);
  CHECK(count(m, cached, "MEM_WR") == 12);
  CHECK_THROWS_AS(read(R"(, "caches": {"line_bytes": 64, "accesses": 1, "off_chip_accesses": 2,
      "memory_reads": 0, "memory_writes": 0, "levels": []})"),
                  Error);
}

TEST_CASE("power over time: columns of the sheet, and Perfetto's tracks") {
  const Model m = find_model("gv100/hw");
  const ActivityFile f = counters(m,
                                  "kernel,INT_ACC,start_ms,time_ms\n"
                                  "a,1e9,0,1\n\"b, c\",2e9,1,1\nd,0,3,2\n");
  CHECK(f.is_sliced);
  const Prediction p = predict(m, f, {});
  CHECK(p.time().value() == doctest::Approx(4e-3));
  const std::string csv = prediction_csv(p);
  CHECK(csv.starts_with("suite,kernel,start_s,time_s,IBP,"));
  CHECK(csv.find("\n,\"b, c\",0.001,0.001,") != std::string::npos);
  const TimeSeries series = time_series(p);
  REQUIRE(series.start_s.size() == 3);
  double sum = 0;
  for (const Segment& s : series.watts) sum += s.values[1];
  CHECK(sum == doctest::Approx(p.sheet.kernels[1].model.value()));
  const std::string trace = perfetto_trace(p);
  CHECK(trace.find("\"name\": \"INTP, W\"") != std::string::npos);
  CHECK(trace.find("\"name\": \"FPUP, W\"") == std::string::npos);
  CHECK(time_chart(series, "t").find("<path") != std::string::npos);
  // The sheet is one that validation reads.
  CHECK(make_sheet(parse_csv(prediction_csv(predict(m,
                                                    counters(m,
                                                             "kernel,INT_ACC,time_s,measured_W\n"
                                                             "a,1e9,0.01,90\n"),
                                                    {})),
                             "s.csv"))
            .notes.empty());
}
