#include "sluice/net/http_service.h"

#include <utility>

namespace sluice::net {
namespace {

struct Service {
  Handler handler;
  Http1Limits limits;
};

class ServiceSession final : public Http1Session {
 public:
  ServiceSession(EventLoop& loop, Socket socket, std::shared_ptr<const Service> service)
      : Http1Session(loop, std::move(socket), service->limits), service_(std::move(service)) {}

 private:
  class RequestExchange final : public Exchange {
   public:
    explicit RequestExchange(ServiceSession& session)
        : Exchange(&session.head(), &session.peer(), &session.stream()), session_(session) {}

    [[nodiscard]] bool taken_over() const { return taken_over_; }

    Task<absl::StatusOr<std::string>> ReadBody(std::size_t max_bytes) override {
      using PartState = Http1Stream::BodyPart::State;
      std::string body;
      if (head_->expect_continue && stream_->body().remaining() <= max_bytes) {
        const bool asked = co_await session_.SendContinue();
        if (!asked) co_return Broken();
      }
      while (true) {
        if (stream_->body().remaining() > max_bytes - body.size()) co_return TooLong();
        const Http1Stream::BodyPart part = co_await stream_->ReadBody(session_.limits().body_time);
        if (part.state == PartState::kEnded) co_return body;
        if (part.state == PartState::kBroken) co_return Broken();
        if (part.content.size() > max_bytes - body.size()) co_return TooLong();
        body.append(part.content);
      }
    }

   private:
    static absl::Status TooLong() { return absl::ResourceExhaustedError("the body is too long"); }
    absl::Status Broken() {
      if (stream_->timed_out()) return absl::DeadlineExceededError("the body took too long");
      return absl::InvalidArgumentError("the body is out of form or broken off");
    }

    ServiceSession& session_;
  };

  Task<bool> ServeRequest() override {
    RequestExchange exchange(*this);
    const Answer answer = co_await service_->handler(exchange);
    if (exchange.taken_over()) co_return false;
    co_return co_await Send(answer);
  }

  std::shared_ptr<const Service> service_;
};

}  // namespace

std::string_view Exchange::path() const { return head_->path.substr(0, head_->path.find('?')); }

std::string_view Exchange::query() const {
  const std::size_t mark = head_->path.find('?');
  return mark == std::string_view::npos ? std::string_view() : head_->path.substr(mark + 1);
}

TcpServer::Factory HttpService(Handler handler, const Http1Limits& limits) {
  auto service = std::make_shared<const Service>(Service{std::move(handler), limits});
  return [service = std::move(service)](EventLoop& loop, Socket socket) {
    return std::make_unique<ServiceSession>(loop, std::move(socket), service);
  };
}

}  // namespace sluice::net
