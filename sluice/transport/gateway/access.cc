// A GatewaySession's part in the access log.
#include <chrono>

#include "sluice/base/steady_now.h"
#include "sluice/rule/client_address.h"
#include "sluice/transport/gateway/session.h"

namespace sluice::gateway {
namespace {

using std::chrono::duration_cast;

std::chrono::milliseconds Since1970() {
  return duration_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now().time_since_epoch());
}

std::string_view ValueOf(const net::RequestHead& head, net::FieldId id) {
  const net::Field* field = head.Find(id);
  return field == nullptr ? std::string_view() : field->value;
}

std::string_view ResultOf(RequestEnd end) {
  switch (end) {
    case RequestEnd::kForwarded:
      return "forwarded";
    case RequestEnd::kFailed:
      return "failed";
    case RequestEnd::kAborted:
      break;
  }
  return "aborted";
}

}  // namespace

// What the rules take for the client, as text.
std::string_view GatewaySession::ClientText() {
  if (!request_->hop.trusted) return peer_text_;
  const ClientAddressOptions& options = parts_.limiter.rules()->rules().options().client_address;
  const IpAddress client = ClientAddress(options, peer_address_, request_->fields);
  // Most often the same as before; a long address in words is an allocation.
  if (client_text_.empty() || client != client_address_) client_text_ = client.ToString();
  client_address_ = client;
  return client_text_;
}

void GatewaySession::BeginAccess() {
  request_->access = {.log = options().access_log};
  if (request_->access.log == nullptr) return;
  request_->access.begin = SteadyNow();
  request_->access_line.Begin(*request_->access.log,
                              {.since_1970 = Since1970(),
                               .client = ClientText(),
                               .peer = peer_text_,
                               .method = head().method,
                               .target = head().path,
                               .minor_version = head().minor_version,
                               .host = head().host,
                               .user_agent = ValueOf(head(), net::FieldId::user_agent),
                               .referer = ValueOf(head(), net::FieldId::referer),
                               .request_id = request_->request_id});
}

void GatewaySession::NoteAsked() {
  if (request_->access.log != nullptr) request_->access.asked = SteadyNow();
}

void GatewaySession::NoteAnswered() {
  if (request_->access.log != nullptr)
    request_->access.upstream_time = SteadyNow() - request_->access.asked;
}

void GatewaySession::NoteOwn(const net::Answer& answer) {
  request_->access.status = answer.status;
  request_->access.sent = to_head() ? 0 : answer.body.size();
}

void GatewaySession::EndAccess() {
  if (request_->access.log == nullptr) return;
  AccessEnd end{.status = request_->access.status,
                .sent = request_->access.sent,
                .received = request_->received,
                .duration = SteadyNow() - request_->access.begin,
                .decision = "none",
                .result = "refused",
                .upstream_time = request_->access.upstream_time};
  if (request_->access.decided) {
    const RuleResult* decisive = request_->outcome.decisive_result();
    end.decision = AnswerName(request_->outcome.answer);
    end.rule = decisive == nullptr ? std::string_view() : decisive->rule->name;
    end.result = request_->outcome.allowed() ? ResultOf(request_->end) : "denied";
  }
  if (request_->access.asked != Time{}) end.upstream = upstreams().name(chosen_);
  request_->access.log->lines.Add(loop().index(), request_->access_line.Finish(end));
}

// A head that could not be read: nothing of it is trusted, not even its first line.
void GatewaySession::OnRefused(const net::Answer& answer) {
  const AccessLog* log = parts_.terms->options.access_log;
  if (log == nullptr) return request_.GiveBack();
  request_->access_line.Begin(*log, {.since_1970 = Since1970(),
                                     .client = peer_text_,
                                     .peer = peer_text_,
                                     .request_id = request_->request_id});
  log->lines.Add(loop().index(), request_->access_line.Finish({.status = answer.status,
                                                               .sent = answer.body.size(),
                                                               .decision = "none",
                                                               .result = "refused"}));
}

}  // namespace sluice::gateway
