#include "sluice/limiter/outcome.h"

namespace sluice {

std::string_view AnswerName(Answer answer) {
  switch (answer) {
    case Answer::kAllowed:
      return "allowed";
    case Answer::kDelayed:
      return "delayed";
    case Answer::kLimited:
      return "limited";
    case Answer::kNeverPasses:
      return "never";
    case Answer::kMissingIdentity:
      return "missing_identity";
    case Answer::kDenied:
      return "denied";
  }
  return "";
}

}  // namespace sluice
