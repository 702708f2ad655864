# Libraries from the distribution, found once for all folders (names: scripts/packages.txt).
# Targets: Threads::Threads fmt::fmt CLI11::CLI11 nlohmann_json::nlohmann_json TBB::tbb hwy::hwy
#          asmjit::asmjit (x86-64) Eigen3::Eigen
#          PkgConfig::capstone PkgConfig::libdw PkgConfig::libelf PkgConfig::libmd
#          PkgConfig::tomlplusplus PkgConfig::liblzma PkgConfig::libzstd PkgConfig::libxxhash
#          and for tests doctest::doctest benchmark::benchmark
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(TBB REQUIRED)
find_package(Eigen3 REQUIRED)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  find_package(asmjit REQUIRED)
endif()
find_package(ZLIB REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(capstone REQUIRED IMPORTED_TARGET capstone)
pkg_check_modules(libdw REQUIRED IMPORTED_TARGET libdw)
pkg_check_modules(libelf REQUIRED IMPORTED_TARGET libelf)
pkg_check_modules(liblzma REQUIRED IMPORTED_TARGET liblzma)
pkg_check_modules(libzstd REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(libxxhash REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(libseccomp IMPORTED_TARGET libseccomp)  # optional: the daemon's sandbox
pkg_check_modules(libmd REQUIRED IMPORTED_TARGET libmd)
pkg_check_modules(tomlplusplus REQUIRED IMPORTED_TARGET tomlplusplus)
pkg_check_modules(libhwy REQUIRED IMPORTED_TARGET libhwy)
if(NOT TARGET hwy::hwy)
  add_library(hwy::hwy ALIAS PkgConfig::libhwy)
endif()
if(BUILD_TESTING)
  find_package(doctest REQUIRED)
  find_package(benchmark REQUIRED)
endif()
