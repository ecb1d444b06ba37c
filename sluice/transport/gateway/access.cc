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
  if (!hop_.trusted) return peer_text_;
  const ClientAddressOptions& options = parts_.limiter.rules()->rules().options().client_address;
  const IpAddress client = ClientAddress(options, peer_address_, fields_);
  // Most often the same as before; a long address in words is an allocation.
  if (client_text_.empty() || client != client_address_) client_text_ = client.ToString();
  client_address_ = client;
  return client_text_;
}

void GatewaySession::BeginAccess() {
  access_ = {.log = options().access_log};
  if (access_.log == nullptr) return;
  access_.begin = SteadyNow();
  access_line_.Begin(*access_.log, {.since_1970 = Since1970(),
                                    .client = ClientText(),
                                    .peer = peer_text_,
                                    .method = head().method,
                                    .target = head().path,
                                    .minor_version = head().minor_version,
                                    .host = head().host,
                                    .user_agent = ValueOf(head(), net::FieldId::user_agent),
                                    .referer = ValueOf(head(), net::FieldId::referer),
                                    .request_id = request_id_});
}

void GatewaySession::NoteAsked() {
  if (access_.log != nullptr) access_.asked = SteadyNow();
}

void GatewaySession::NoteAnswered() {
  if (access_.log != nullptr) access_.upstream_time = SteadyNow() - access_.asked;
}

void GatewaySession::NoteOwn(const net::Answer& answer) {
  access_.status = answer.status;
  access_.sent = to_head() ? 0 : answer.body.size();
}

void GatewaySession::EndAccess() {
  if (access_.log == nullptr) return;
  AccessEnd end{.status = access_.status,
                .sent = access_.sent,
                .received = received_,
                .duration = SteadyNow() - access_.begin,
                .decision = "none",
                .result = "refused",
                .upstream_time = access_.upstream_time};
  if (access_.decided) {
    const RuleResult* decisive = outcome_.decisive_result();
    end.decision = AnswerName(outcome_.answer);
    end.rule = decisive == nullptr ? std::string_view() : decisive->rule->name;
    end.result = outcome_.allowed() ? ResultOf(end_) : "denied";
  }
  if (access_.asked != Time{}) end.upstream = upstreams().name(chosen_);
  access_.log->lines.Add(loop().index(), access_line_.Finish(end));
}

// A head that could not be read: nothing of it is trusted, not even its first line.
void GatewaySession::OnRefused(const net::Answer& answer) {
  const AccessLog* log = parts_.terms->options.access_log;
  if (log == nullptr) return;
  access_line_.Begin(*log, {.since_1970 = Since1970(),
                            .client = peer_text_,
                            .peer = peer_text_,
                            .request_id = request_id_});
  log->lines.Add(loop().index(), access_line_.Finish({.status = answer.status,
                                                      .sent = answer.body.size(),
                                                      .decision = "none",
                                                      .result = "refused"}));
}

}  // namespace sluice::gateway
