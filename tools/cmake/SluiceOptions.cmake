# Compiler flags for every target, and the switches that the presets set.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

set(SLUICE_SANITIZE "" CACHE STRING "address;undefined or thread; empty for none")
option(SLUICE_FUZZ "Build the fuzz targets (needs clang)" OFF)
option(SLUICE_NEED_TESTS "Fail when GoogleTest is not there, rather than leave out the tests" OFF)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(SLUICE_CCACHE ccache)
if(SLUICE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${SLUICE_CCACHE})
endif()

# Everything that one of our targets is compiled with.
add_library(sluice_flags INTERFACE)
target_compile_options(sluice_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wextra-semi
  -Wno-missing-field-initializers -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Copying two members in one 16-byte move, just after each was written by itself, waits until both
  # writes are through. Without the vectorizer that makes such moves a decision takes 10 % less.
  target_compile_options(sluice_flags INTERFACE $<$<CONFIG:Release>:-fno-tree-slp-vectorize>)
endif()
target_include_directories(sluice_flags INTERFACE ${PROJECT_SOURCE_DIR})

if(SLUICE_SANITIZE)
  string(REPLACE ";" "," _sanitize "${SLUICE_SANITIZE}")
  add_compile_options(-fsanitize=${_sanitize} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${_sanitize})
  # The sanitizers' own code hides from g++ 12 that something was set (std::regex, std::optional).
  target_compile_options(sluice_flags INTERFACE -Wno-maybe-uninitialized)
  if(SLUICE_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Asio has fences, which tsan does not follow; its queues have a mutex besides.
    add_compile_options(-Wno-tsan)
  endif()
endif()
if(SLUICE_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=address,undefined)
endif()
