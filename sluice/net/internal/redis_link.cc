#include "sluice/net/internal/redis_link.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sluice/base/steady_now.h"
#include "sluice/net/internal/redis_greeting.h"

namespace sluice::net::internal {
namespace {

constexpr std::size_t kFirstBytes = std::size_t{4} * 1024;
constexpr std::size_t kReadBytes = std::size_t{64} * 1024;

using Endpoints = std::vector<tcp::endpoint>;

}  // namespace

RedisLink::RedisLink(EventLoop& loop, const RedisConnectionOptions& options, RedisTarget target)
    : loop_(loop),
      options_(options),
      target_(std::move(target)),
      alarm_(*this, loop.deadlines()),
      lookup_(loop),
      buffer_(kFirstBytes),
      reader_(options.reply) {}

Duration RedisLink::Left(std::size_t parts) const {
  return std::max(target_.timeout - SteadyNow(), Duration::zero()) /
         static_cast<Duration::rep>(parts);
}

void RedisLink::Close() {
  closed_ = true;
  lookup_.GiveUp();
  if (stream_) stream_->Abort();
}

Task<absl::Status> RedisLink::Open(std::shared_ptr<RedisLink> self) {
  RedisLink& link = *self;
  absl::Status status;
  if (!link.options_.unix_socket.empty()) {
    status = link.ConnectToPath();
  } else if (IsLiteral(link.target_.address)) {
    absl::StatusOr<Endpoints> endpoints = Resolve(link.target_.address);
    status = co_await link.ConnectTo(*std::move(endpoints));
  } else {
    status = co_await link.ConnectToName();
  }
  if (!status.ok()) co_return status;
  link.stream_->Set(link.Left());
  if (link.target_.peer) status = co_await link.stream_->ConnectTls(link.target_.peer);
  if (status.ok()) status = co_await link.Greet();
  link.stream_->Clear();
  if (status.ok() && link.closed_) status = absl::CancelledError();
  co_return status;
}

Task<absl::Status> RedisLink::ConnectToName() {
  alarm_.Set(Left());
  absl::StatusOr<Endpoints> found = co_await lookup_.Find(target_.address);
  alarm_.Clear();
  if (!found.ok()) co_return absl::UnavailableError(found.status().message());
  if (closed_) co_return absl::CancelledError();
  absl::Status status = co_await ConnectTo(*std::move(found));
  co_return status;
}

Task<absl::Status> RedisLink::ConnectTo(Endpoints endpoints) {
  int error = ENOENT;
  for (std::size_t i = 0; i < endpoints.size() && !closed_; ++i) {
    stream_.emplace(loop_, Socket());
    stream_->Set(Left(endpoints.size() - i));
    error = co_await stream_->TryConnect(endpoints[i]);
    if (error == 0) co_return absl::OkStatus();
  }
  co_return absl::UnavailableError(absl::StrCat("cannot connect: ", std::strerror(error)));
}

// Connecting to one never waits.
absl::Status RedisLink::ConnectToPath() {
  sockaddr_un address{};
  const std::string& path = options_.unix_socket;
  if (path.size() >= sizeof(address.sun_path)) {
    return absl::UnavailableError("cannot connect: the path is longer than a socket's may be");
  }
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  Socket socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), {});
  if (!socket.open() || ::connect(socket.descriptor(), reinterpret_cast<const sockaddr*>(&address),
                                  sizeof(address)) != 0) {
    return absl::UnavailableError(absl::StrCat("cannot connect: ", std::strerror(errno)));
  }
  stream_.emplace(loop_, std::move(socket));
  return absl::OkStatus();
}

Task<absl::Status> RedisLink::Greet() {
  RedisGreeting greeting({.user = options_.user,
                          .password = options_.password,
                          .database = options_.database,
                          .client_name = options_.client_name,
                          .primary = options_.primary});
  const bool written = co_await Write(greeting.bytes());
  if (!written) co_return Ended();
  while (!greeting.done()) {
    RedisReply reply;
    const RedisReplyReader::Step step = reader_.Next(&reply);
    absl::Status status;
    if (step == RedisReplyReader::Step::kBroken) {
      status = absl::UnavailableError(reader_.why());
    } else if (step == RedisReplyReader::Step::kMore) {
      status = co_await Read();
    } else {
      status = greeting.Answer(reply);
    }
    if (!status.ok()) co_return status;
  }
  co_return absl::OkStatus();
}

Task<absl::Status> RedisLink::Read() {
  const std::size_t size = co_await stream_->Read(buffer_, kReadBytes);
  if (size == 0) co_return Ended();
  reader_.Feed(buffer_.view());
  buffer_.Clear();
  co_return absl::OkStatus();
}

absl::Status RedisLink::Ended() const {
  if (stream_->timed_out())
    return absl::UnavailableError("the server does not answer the greeting");
  const std::string_view tls = stream_->tls_error();
  return absl::UnavailableError(absl::StrCat("the connection was ended", tls.empty() ? "" : ": ",
                                             absl::string_view(tls.data(), tls.size())));
}

}  // namespace sluice::net::internal
