// The main() of a fuzz target where libFuzzer is not there: runs every file of the given files and
// folders through LLVMFuzzerTestOneInput once, so that an input that once broke a parser stays a
// test in every build.
//
// An empty corpus is a failure: a test that looks at nothing must not pass.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);

namespace {

namespace fs = std::filesystem;

// The regular files under `path`, or `path` itself; in order of their names.
std::vector<fs::path> FilesOf(const fs::path& path) {
  std::error_code error;
  if (fs::is_regular_file(path, error)) return {path};
  std::vector<fs::path> files;
  fs::recursive_directory_iterator entries(path, error);
  for (; !error && entries != fs::recursive_directory_iterator(); entries.increment(error)) {
    if (entries->is_regular_file(error)) files.push_back(entries->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// False when the file cannot be read.
bool Run(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  if (!in.is_open() || in.bad()) return false;
  // Said before it runs: after a crash the last line names the input.
  std::printf("%s (%zu bytes)\n", file.c_str(), bytes.size());
  std::fflush(stdout);
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t inputs = 0;
  for (int i = 1; i < argc; ++i) {
    for (const fs::path& file : FilesOf(argv[i])) {
      if (!Run(file)) {
        std::fprintf(stderr, "cannot read %s\n", file.c_str());
        return 1;
      }
      ++inputs;
    }
  }
  if (inputs == 0) {
    std::fprintf(stderr, "no input: name the files or folders of a corpus that is not empty\n");
    return 1;
  }
  std::printf("%zu inputs\n", inputs);
  return 0;
}
