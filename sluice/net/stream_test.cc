// A stream over TLS in moments that no request brings about in good time. What waits and what does
// not is settled on the loop's own thread, where nothing can come in between.
#include "sluice/net/stream.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "sluice/net/tcp_server.h"
#include "sluice/net/testing/tls_client.h"

namespace sluice::net {
namespace {

using namespace std::chrono_literals;
using testing::KeyPair;
using testing::TestAuthority;
using testing::TlsClient;

// What a connection does once its handshake has ended, in whatever way.
using Act = Task<void> (*)(Stream& stream, absl::Status status);

class ActSession final : public Session {
 public:
  ActSession(EventLoop& loop, Socket socket, std::shared_ptr<const TlsServerContext> context,
             Act act)
      : stream_(loop, std::move(socket)), context_(std::move(context)), act_(act) {}

  Task<void> Run() override {
    absl::Status status = co_await stream_.AcceptTls(*context_);
    co_await act_(stream_, std::move(status));
  }
  void Drain() override {}
  void Abort() override { stream_.Abort(); }

 private:
  Stream stream_;
  const std::shared_ptr<const TlsServerContext> context_;
  const Act act_;
};

// Blocks the loop, so that it cannot tell anybody of it.
void AwaitReadable(Stream& stream) {
  pollfd watched{.fd = stream.descriptor(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&watched, 1, 20'000), 1);
}

class StreamTest : public ::testing::Test {
 protected:
  void Start(Act act) {
    const KeyPair pair = authority_.Issue({});
    auto context =
        TlsServerContext::Load({.pairs = {{pair.certificate_file, pair.key_file}}}).value();
    auto server = TcpServer::Start(
        loops_, {"127.0.0.1", 0}, {}, [context, act](EventLoop& loop, Socket socket) {
          return std::make_unique<ActSession>(loop, std::move(socket), context, act);
        });
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    loops_.Start();
  }
  ~StreamTest() override {
    server_.reset();
    loops_.Stop();
  }
  std::uint16_t port() { return server_->endpoint().port(); }

  TestAuthority authority_;
  EventLoops loops_{1};
  std::unique_ptr<TcpServer> server_;
};

constexpr std::size_t kLong = 20'000'000;  // more than sockets hold

// A look at the stream (a server drains) finds what somebody waits for in Read(), and wakes him.
// That another waits in Write() at that moment, for a client that is slow, is not to be noticed.
TEST_F(StreamTest, ALookThatWakesTheReaderDoesNotCutTheWriter) {
  static std::promise<void> told;
  told = {};
  Start([](Stream& stream, absl::Status status) -> Task<void> {
    if (!status.ok()) co_return;
    const std::string content(kLong, 'x');
    Task<bool> writing = stream.Write(content);
    EXPECT_FALSE(writing.done());
    told.set_value();
    ReadBuffer buffer(4096);
    stream.loop().Post([&stream] {
      AwaitReadable(stream);
      EXPECT_TRUE(stream.Readable());
    });
    const std::size_t size = co_await stream.Read(buffer, 4096);
    EXPECT_EQ(buffer.view().substr(0, size), "go on");
    const bool written = co_await std::move(writing);
    EXPECT_TRUE(written);
  });
  TlsClient client(port(), {});
  ASSERT_TRUE(client.Handshake()) << client.why();
  told.get_future().wait();  // whoever read before that would let the writer go on
  client.Send("go on");
  EXPECT_EQ(client.ReadExactly(kLong).size(), kLong);
  EXPECT_TRUE(client.Ended());
}

// The client reads nothing before that: else there might be nothing to wait for.
TEST_F(StreamTest, WhoeverIsToldToStopWaitingStops) {
  static std::promise<void> told;
  told = {};
  Start([](Stream& stream, absl::Status status) -> Task<void> {
    if (!status.ok()) co_return;
    const std::string content(kLong, 'x');
    Task<bool> writing = stream.Write(content);
    stream.CancelWait();
    told.set_value();
    const bool written = co_await std::move(writing);
    EXPECT_FALSE(written);
  });
  TlsClient client(port(), {});
  ASSERT_TRUE(client.Handshake()) << client.why();
  told.get_future().wait();
  EXPECT_LT(client.ReadToEnd().size(), kLong);
}

// Who has said its last word twice has not taken in what the peer still had to say.
TEST_F(StreamTest, SayingTwiceThatItEndsLeavesWhatThePeerSends) {
  Start([](Stream& stream, absl::Status status) -> Task<void> {
    if (!status.ok()) co_return;
    co_await stream.EndWriting();
    AwaitReadable(stream);
    co_await stream.EndWriting();
    ReadBuffer buffer(4096);
    const std::size_t size = co_await stream.Read(buffer, 4096);
    EXPECT_EQ(buffer.view().substr(0, size), "last words");
    EXPECT_EQ(stream.tls_error(), "");
  });
  TlsClient client(port(), {});
  ASSERT_TRUE(client.Handshake()) << client.why();
  EXPECT_TRUE(client.Ended());
  client.Send("last words");
  client.EndWriting();
  server_->Drain(20s);
}

TEST_F(StreamTest, AHandshakeThatIsBrokenOffSaysSo) {
  static std::promise<absl::Status> ended;
  ended = {};
  Start([](Stream& /*stream*/, absl::Status status) -> Task<void> {
    ended.set_value(std::move(status));
    co_return;
  });
  TlsClient client(port(), {});
  const std::string flight = client.FirstFlight();
  client.SendPlain(flight.substr(0, 50));
  while (server_->connections() == 0) std::this_thread::yield();
  server_->Drain(0ms);
  const absl::Status status = ended.get_future().get();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
}

// An idle connection of which half a record has come is not idle: the rest is on its way.
TEST_F(StreamTest, HalfARecordIsSomething) {
  Start([](Stream& stream, absl::Status status) -> Task<void> {
    if (!status.ok()) co_return;
    EXPECT_FALSE(stream.Readable());
    const bool told = co_await stream.Write("now");
    EXPECT_TRUE(told);
    AwaitReadable(stream);
    EXPECT_TRUE(stream.Readable());
    ReadBuffer buffer(4096);
    const bool more = co_await stream.Write("more");
    EXPECT_TRUE(more);
    const std::size_t size = co_await stream.Read(buffer, 4096);
    EXPECT_EQ(buffer.view().substr(0, size), "a whole record");
  });
  TlsClient client(port(), {});
  ASSERT_TRUE(client.Handshake()) << client.why();
  EXPECT_EQ(client.ReadExactly(3), "now");
  const std::string record = client.Sealed("a whole record");
  client.SendPlain(record.substr(0, 20));
  EXPECT_EQ(client.ReadExactly(4), "more");
  client.SendPlain(record.substr(20));
  EXPECT_TRUE(client.Ended());
}

}  // namespace
}  // namespace sluice::net
