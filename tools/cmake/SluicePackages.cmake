# Libraries, all from the distribution (docs/design/0001-libraries.md has the reasons).

find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(GTest REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(CLI11 REQUIRED)
find_package(benchmark REQUIRED)
find_package(Boost 1.81 REQUIRED COMPONENTS json url)
