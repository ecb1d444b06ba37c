// Notices that files have changed, and has them loaded once they fit together.
//
// Certificates are renewed by others in every way there is: a file is renamed over the old one or
// written over it, or a symlink (of the file, or of a folder on the way to it) is pointed
// elsewhere. So contents are compared, not times or inodes. A certificate and its key are seldom
// replaced at the same instant: what can not be loaded is no failure until it has lain there
// unchanged for kPatience looks.
//
//   CertificateWatch watch({"site.pem", "site.key"});     // before they are loaded
//   ...
//   const auto seen = watch.Look([&] { return LoadAndUse(); });     // every few seconds
//
// Cost: a look reads each file, through one small buffer that is wiped behind it: no key lies about
// in memory that was given back. Keeps hashes, no contents. Asks no clock. For one thread at a
// time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "sluice/base/hash.h"

namespace sluice {

class CertificateWatch {
 public:
  // How often the same contents are tried before they count as broken. The first few tries only
  // differ in what lies beside the files by then: a symlink's folder, rights.
  static constexpr int kPatience = 5;

  enum class Event : std::uint8_t {
    kNothing,   // as before, or not done yet
    kReplaced,  // loaded: from now on these contents are in force
    kBroken,    // told once for each contents that stay broken; the old ones stay in force
  };
  struct Seen {
    Event event = Event::kNothing;
    absl::Status why;  // kBroken: what loading said
  };

  // Takes it that what the files hold now is, or is about to be, in force.
  explicit CertificateWatch(std::vector<std::string> files);

  // The files hold something else than what is in force.
  [[nodiscard]] bool Changed() const { return Contents() != in_force_; }

  // `load` reads the files and puts them in force, all of them, or says why it did not.
  [[nodiscard]] Seen Look(const std::function<absl::Status()>& load);

 private:
  [[nodiscard]] Hash128 Contents() const;

  std::vector<std::string> files_;
  HashKey key_;
  Hash128 in_force_;
  std::optional<Hash128> failed_;  // the last contents that could not be loaded
  int tries_ = 0;                  // of failed_
};

}  // namespace sluice
