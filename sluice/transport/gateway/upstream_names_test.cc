#include "sluice/transport/gateway/upstream_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <map>
#include <string>
#include <thread>

#include "absl/status/status.h"

namespace sluice::gateway {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

Endpoints At(std::initializer_list<const char*> addresses) {
  Endpoints endpoints;
  for (const char* address : addresses) {
    endpoints.emplace_back(net::asio::ip::make_address(address), 80);
  }
  return endpoints;
}

class UpstreamNamesTest : public ::testing::Test {
 protected:
  UpstreamNamesTest()
      : names_([this](const net::HostPort& where) { return Resolve(where); },
               [this](const auto& upstream, const auto& endpoints) {
                 published_.push_back(upstream->name + " " + net::ToString(endpoints->front()));
               },
               [this] { return now_; }) {}

  absl::StatusOr<Endpoints> Resolve(const net::HostPort& where) {
    asked_.push_back(where.host);
    if (during_) during_();
    const auto found = zone_.find(where.host);
    if (found == zone_.end()) return absl::NotFoundError("nobody of that name");
    return found->second;
  }
  static std::shared_ptr<Upstream> Make(const char* host) {
    return std::make_shared<Upstream>(net::HostPort{host, 80}, /*loop_count=*/1, nullptr);
  }
  // Watches what stands for 10.0.0.1 now.
  void Watch(const std::shared_ptr<Upstream>& upstream) {
    names_.Replace({{upstream, std::make_shared<const Endpoints>(At({"10.0.0.1"}))}}, 30s);
  }
  // How long to wait, after so much time.
  Duration LookAfter(Duration time) {
    now_ += time;
    return names_.Look();
  }

  std::map<std::string, Endpoints> zone_;
  std::vector<std::string> asked_;
  std::vector<std::string> published_;
  std::function<void()> during_;
  Time now_{1h};
  UpstreamNames names_;
};

TEST_F(UpstreamNamesTest, ANameIsLookedUpEachTimeItIsDue) {
  Watch(Make("api"));
  zone_["api"] = At({"10.0.0.2"});
  EXPECT_EQ(LookAfter(30s - 1ns), 1s);
  EXPECT_THAT(asked_, ElementsAre());
  EXPECT_EQ(LookAfter(1ns), 1s);
  EXPECT_THAT(asked_, ElementsAre("api"));
  EXPECT_THAT(published_, ElementsAre("api:80 10.0.0.2:80"));
  LookAfter(29s);
  EXPECT_THAT(asked_, ElementsAre("api"));
  LookAfter(1s);
  EXPECT_THAT(asked_, ElementsAre("api", "api"));
  EXPECT_THAT(published_, ElementsAre("api:80 10.0.0.2:80")) << "the same is no news";
}

TEST_F(UpstreamNamesTest, OneThatFailsIsLookedUpSoonButNotAtOnceAgain) {
  const auto api = Make("api");
  Watch(api);
  zone_["api"] = At({"10.0.0.1"});
  api->failed_lately = true;
  LookAfter(999ms);
  EXPECT_THAT(asked_, ElementsAre());
  LookAfter(1ms);
  EXPECT_THAT(asked_, ElementsAre("api"));
  EXPECT_FALSE(api->failed_lately);
  LookAfter(2s);
  EXPECT_THAT(asked_, ElementsAre("api"));
  api->failed_lately = true;
  LookAfter(0s);
  EXPECT_THAT(asked_, ElementsAre("api", "api"));
}

TEST_F(UpstreamNamesTest, AnAddressIsNeverLookedUp) {
  names_.Replace({{Make("192.0.2.1"), std::make_shared<const Endpoints>(At({"192.0.2.1"}))},
                  {Make("::1"), std::make_shared<const Endpoints>(At({"::1"}))}},
                 30s);
  EXPECT_EQ(LookAfter(1h), Duration::max());
  EXPECT_THAT(asked_, ElementsAre());
}

TEST_F(UpstreamNamesTest, AnErrorLeavesTheOldAddressesAndTheNextAnswerIsTaken) {
  Watch(Make("api"));
  for (int i = 0; i < 3; ++i) LookAfter(30s);
  EXPECT_THAT(asked_, ElementsAre("api", "api", "api"));
  EXPECT_THAT(published_, ElementsAre());
  zone_["api"] = {};
  LookAfter(30s);
  EXPECT_THAT(published_, ElementsAre());
  zone_["api"] = At({"10.0.0.9"});
  LookAfter(30s);
  EXPECT_THAT(published_, ElementsAre("api:80 10.0.0.9:80"));
}

TEST_F(UpstreamNamesTest, AnotherOrderIsNoNews) {
  const auto api = Make("api");
  names_.Replace({{api, std::make_shared<const Endpoints>(At({"10.0.0.1", "10.0.0.2"}))}}, 30s);
  zone_["api"] = At({"10.0.0.2", "10.0.0.1"});
  LookAfter(30s);
  EXPECT_THAT(published_, ElementsAre());
  zone_["api"] = At({"10.0.0.2", "10.0.0.3"});
  LookAfter(30s);
  EXPECT_THAT(published_, ElementsAre("api:80 10.0.0.2:80"));
}

TEST_F(UpstreamNamesTest, WhatStaysIsNotAskedAboutAnewAndWhatGoesIsAskedAboutNoMore) {
  const auto api = Make("api");
  Watch(api);
  now_ += 20s;
  names_.Replace({{api, nullptr}}, 30s);
  LookAfter(10s);
  EXPECT_THAT(asked_, ElementsAre("api"));
  names_.Replace({}, 30s);
  EXPECT_EQ(LookAfter(1h), Duration::max());
  EXPECT_THAT(asked_, ElementsAre("api"));
}

// A slow answer must not undo what a reload has found meanwhile.
TEST_F(UpstreamNamesTest, AnAnswerThatComesAfterTheNameWasReplacedIsDropped) {
  const auto api = Make("api");
  Watch(api);
  zone_["api"] = At({"10.0.0.7"});
  during_ = [&] {
    names_.Replace({}, 30s);
    Watch(api);
  };
  LookAfter(30s);
  EXPECT_THAT(published_, ElementsAre());
}

// A name server that is gone takes its time for each answer.
TEST_F(UpstreamNamesTest, AfterALookupThatTookLongThereIsAPauseAllTheSame) {
  Watch(Make("api"));
  during_ = [&] { now_ += 40s; };
  LookAfter(30s);
  LookAfter(29s);
  EXPECT_THAT(asked_, ElementsAre("api"));
  LookAfter(1s);
  EXPECT_THAT(asked_, ElementsAre("api", "api"));
}

TEST_F(UpstreamNamesTest, NothingIsPublishedOrLookedUpAfterTheEnd) {
  const auto known = std::make_shared<const Endpoints>(At({"10.0.0.1"}));
  names_.Replace({{Make("api"), known}, {Make("other"), known}}, 30s);
  zone_["api"] = zone_["other"] = At({"10.0.0.7"});
  during_ = [&] { names_.Stop(); };
  LookAfter(30s);
  EXPECT_THAT(published_, ElementsAre());
  EXPECT_THAT(asked_, ElementsAre("api"));
}

TEST(NameWatchTest, ALookupThatHangsDoesNotHoldUpTheEnd) {
  auto asked = std::make_shared<std::promise<void>>();
  auto answer = std::make_shared<std::promise<void>>();
  auto gone = std::make_shared<std::promise<void>>();
  struct AtEnd {
    std::shared_ptr<std::promise<void>> gone;
    explicit AtEnd(std::shared_ptr<std::promise<void>> to_tell) : gone(std::move(to_tell)) {}
    AtEnd(const AtEnd&) = delete;
    AtEnd& operator=(const AtEnd&) = delete;
    ~AtEnd() { gone->set_value(); }
  };
  {
    NameWatch watch(
        [asked, answer, end = std::make_shared<AtEnd>(gone)](const net::HostPort&) {
          asked->set_value();
          answer->get_future().wait();
          return absl::StatusOr<Endpoints>(At({"10.0.0.1"}));
        },
        [](const auto&, const auto&) { FAIL(); }, /*patience=*/1ms);
    watch.Replace({{std::make_shared<Upstream>(net::HostPort{"api", 80}, 1, nullptr),
                    std::make_shared<const Endpoints>(At({"10.0.0.2"}))}},
                  1ms);
    asked->get_future().wait();
  }
  answer->set_value();
  EXPECT_EQ(gone->get_future().wait_for(20s), std::future_status::ready);
}

// So that a resolver which uses what its caller has is safe as long as it answers.
TEST(NameWatchTest, ALookupThatAnswersIsWaitedFor) {
  std::promise<void> asked;
  std::promise<void> answer;
  std::atomic<bool> answered = false;
  auto watch = std::make_unique<NameWatch>(
      [&](const net::HostPort&) {
        if (answered) return absl::StatusOr<Endpoints>(At({"10.0.0.2"}));
        asked.set_value();
        answer.get_future().wait();
        answered = true;
        return absl::StatusOr<Endpoints>(At({"10.0.0.2"}));
      },
      [](const auto&, const auto&) { FAIL(); }, /*patience=*/1h);
  watch->Replace({{std::make_shared<Upstream>(net::HostPort{"api", 80}, 1, nullptr),
                   std::make_shared<const Endpoints>(At({"10.0.0.2"}))}},
                 1ns);
  asked.get_future().wait();
  std::thread end([&] {
    watch.reset();
    EXPECT_TRUE(answered);
  });
  answer.set_value();
  end.join();
}

TEST(NameWatchTest, FindsOtherAddressesByItself) {
  std::promise<std::string> found;
  NameWatch watch([](const net::HostPort&) { return At({"10.0.0.2"}); },
                  [&](const auto&, const auto& endpoints) {
                    found.set_value(net::ToString(endpoints->front()));
                  });
  watch.Replace({{std::make_shared<Upstream>(net::HostPort{"api", 80}, 1, nullptr),
                  std::make_shared<const Endpoints>(At({"10.0.0.1"}))}},
                1ms);
  EXPECT_EQ(found.get_future().get(), "10.0.0.2:80");
}

}  // namespace
}  // namespace sluice::gateway
