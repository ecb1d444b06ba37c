#include "sluice/net/internal/lookup.h"

#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sluice/net/await.h"

namespace sluice::net::internal {

using Answer = absl::StatusOr<std::vector<tcp::endpoint>>;

// Shared with the thread, which may outlive everything else.
struct Lookup::Question {
  // Once; what comes later is dropped.
  void Answer(internal::Answer found) {
    const std::lock_guard lock(mutex);
    if (loop == nullptr) return;
    answer = std::move(found);
    std::exchange(loop, nullptr)->Post([asked = std::move(asked)]() mutable { asked(); });
  }

  std::mutex mutex;  // guards what follows until it is answered
  EventLoop* loop;   // null: answered
  absl::AnyInvocable<void()> asked;
  internal::Answer answer = absl::CancelledError("the lookup was given up");
};

Task<Answer> Lookup::Find(HostPort name) {
  question_ = std::make_shared<Question>();
  const std::shared_ptr<Question> question = question_;
  question->loop = &loop_;
  loop_.BeginOutside();
  co_await Await<>([&](auto done) {
    question->asked = std::move(done);
    try {
      std::thread([question, name] { question->Answer(Resolve(name)); }).detach();
    } catch (const std::system_error&) {
      question->Answer(
          absl::ResourceExhaustedError(absl::StrCat("no thread to look up `", name.host, "`")));
    }
  });
  loop_.EndOutside();
  question_ = nullptr;
  co_return std::move(question->answer);
}

void Lookup::GiveUp() {
  if (question_) question_->Answer(absl::CancelledError("the lookup was given up"));
}

}  // namespace sluice::net::internal
