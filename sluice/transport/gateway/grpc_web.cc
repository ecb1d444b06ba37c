#include "sluice/transport/gateway/grpc_web.h"

#include <array>
#include <utility>

#include "absl/strings/escaping.h"
#include "sluice/base/ascii.h"
#include "sluice/transport/gateway/escape.h"

namespace sluice::gateway {
namespace {

constexpr std::array<std::pair<std::string_view, GrpcWeb>, 5> kTypes = {
    {{"application/grpc-web", GrpcWeb::kPlain},
     {"application/grpc-web+proto", GrpcWeb::kProto},
     {"application/grpc-web+json", GrpcWeb::kJson},
     {"application/grpc-web-text", GrpcWeb::kText},
     {"application/grpc-web-text+proto", GrpcWeb::kTextProto}}};

}  // namespace

GrpcWeb GrpcWebOf(const net::RequestHead& head) {
  const net::Field* type = head.Find(net::FieldId::content_type);
  if (type == nullptr) return GrpcWeb::kNone;
  const std::string_view media = Trim(type->value.substr(0, type->value.find(';')));
  for (const auto& [name, form] : kTypes) {
    if (EqualsIgnoringCase(media, name)) return form;
  }
  return GrpcWeb::kNone;
}

int GrpcStatusOf(int http_status) {
  switch (http_status) {
    case 400:
      return 13;
    case 401:
      return 16;
    case 403:
      return 7;
    case 408:
    case 504:
      return 4;
    case 413:
    case 429:
      return 8;
    case 422:
      return 3;
    case 502:
    case 503:
      return 14;
    default:
      return 2;  // UNKNOWN
  }
}

void MakeGrpcWeb(GrpcWeb form, std::string_view message, bool exposed, net::Answer* answer) {
  std::string trailers = "grpc-status: ";
  net::AppendNumber(static_cast<std::size_t>(GrpcStatusOf(answer->status)), &trailers);
  trailers.append("\r\ngrpc-message: ");
  AppendEscaped(message, "%", "%", &trailers);  // as gRPC has it
  trailers.append("\r\n");

  std::string frame("\x80", 1);
  for (int shift = 24; shift >= 0; shift -= 8) {
    frame.push_back(static_cast<char>(trailers.size() >> static_cast<unsigned>(shift) & 0xffU));
  }
  frame.append(trailers);
  const bool text = form == GrpcWeb::kText || form == GrpcWeb::kTextProto;

  answer->status = 200;
  for (const auto& [name, of] : kTypes) {
    if (of == form) answer->content_type = name;
  }
  answer->body = text ? std::string(absl::Base64Escape(frame)) : std::move(frame);
  answer->more_fields.append(trailers);
  if (exposed) {
    answer->more_fields.append("Access-Control-Expose-Headers: Grpc-Status, Grpc-Message\r\n");
  }
}

}  // namespace sluice::gateway
