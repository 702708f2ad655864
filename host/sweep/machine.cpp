#include "host/sweep/machine.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>

#include "device_sim/base/error.h"
#include "host/processor.h"

namespace gpusim::sweep {

Sha256::Sha256() { SHA256Init(&context_); }

void Sha256::add(std::string_view bytes) {
  SHA256Update(&context_, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

std::string Sha256::hex() {
  char text[SHA256_DIGEST_STRING_LENGTH];
  return SHA256End(&context_, text);
}

std::string sha256_of(std::string_view text) {
  Sha256 sum;
  sum.add(text);
  return sum.hex();
}

std::string sha256_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             std::fclose);
  if (!file) throw Error(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  Sha256 sum;
  char piece[1 << 16];
  while (const size_t n = std::fread(piece, 1, sizeof piece, file.get())) sum.add({piece, n});
  if (std::ferror(file.get()))
    throw Error(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  return sum.hex();
}

nlohmann::ordered_json simulator_json(const std::string& version) {
  return {{"version", version}, {"sha256", sha256_file("/proc/self/exe")}};
}

nlohmann::ordered_json machine_json() {
  utsname system{};
  ::uname(&system);
  return {{"processor", host::processor_name()},
          {"host_threads", host::host_threads()},
          {"memory_bytes", static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                               static_cast<uint64_t>(::sysconf(_SC_PAGESIZE))},
          {"system", fmt::format("{} {} {}", system.sysname, system.release, system.machine)}};
}

double load_average() {
  double load = -1;
  return ::getloadavg(&load, 1) == 1 ? load : -1;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm t{};
  ::gmtime_r(&now, &t);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", t.tm_year + 1900, t.tm_mon + 1,
                     t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec);
}

std::string quoted(const std::string& word) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || std::strchr("_-./=@%+,:", c);
  };
  bool all_plain = !word.empty();
  for (const char c : word) all_plain &= c != '\0' && plain(c);
  if (all_plain) return word;
  std::string text = "'";
  for (const char c : word) {
    if (c == '\'')
      text += "'\\''";
    else
      text += c;
  }
  return text + "'";
}

}  // namespace gpusim::sweep
