# Libraries, all from the distribution (docs/design/0001-libraries.md has the reasons).

find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(OpenSSL 3.0 REQUIRED)
find_package(Boost 1.81 REQUIRED COMPONENTS json)
find_package(PkgConfig REQUIRED)
pkg_check_modules(hiredis REQUIRED IMPORTED_TARGET hiredis)

# Running needs neither: a preset that builds tests asks for them (SLUICE_NEED_TESTS), any other
# leaves out what is not there.
if(SLUICE_NEED_TESTS)
  find_package(GTest REQUIRED)
else()
  find_package(GTest QUIET)
endif()
find_package(benchmark QUIET)
foreach(package GTest benchmark)
  if(NOT ${package}_FOUND)
    message(STATUS "${package} is not installed: what needs it is left out")
  endif()
endforeach()
