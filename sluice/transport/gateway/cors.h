// Cross-origin requests (CORS, https://fetch.spec.whatwg.org/#http-cors-protocol): what a browser
// has to read on an answer of ours, so that the script which asked may see it.
//
//   HTTP/1.1 429 Too Many Requests
//   Access-Control-Allow-Origin: https://app.example      the request's Origin, if it is listed
//   Access-Control-Expose-Headers: RateLimit-Policy, RateLimit, Retry-After, X-Request-Id
//   Vary: Origin
//
// Without the first line the script learns of no status at all, only that something failed, and
// tries again at once. Answers of the upstream go on as they came: their fields are its own.
//
// A preflight is the browser's own question before a request of that kind: OPTIONS with Origin and
// Access-Control-Request-Method, without a body, an upgrade or the script's credentials. By choice
// it is exempt from every limit; it goes to the upstream, which answers it. Anybody can send one,
// so what the upstream does with OPTIONS should cost little. Rules with `deny: true` hold for it,
// too.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sluice/net/http1_parser.h"
#include "sluice/transport/dialects.h"

namespace sluice::gateway {

struct CorsOptions {
  std::vector<std::string> origins;  // "https://app.example", or "*" alone; empty: none of this
  bool exempt_preflight = false;
  // Also for scripts that send cookies; not with "*", which browsers do not take for an answer
  // then.
  bool credentials = false;
};

class Cors {
 public:
  // `dialects` are those of the limit fields that scripts shall be able to read.
  Cors(CorsOptions options, const transport::HeaderDialects& dialects);

  // Whether the request is a preflight, from an origin that is listed, which nothing is charged
  // for.
  [[nodiscard]] bool Exempts(const net::RequestHead& head) const;

  // Appends the lines for an answer of ours to this request.
  void AppendFields(const net::RequestHead& head, std::string* out) const;

 private:
  [[nodiscard]] bool Lists(std::string_view origin) const;

  const CorsOptions options_;
  const bool any_origin_;
  std::string expose_;  // that line
};

}  // namespace sluice::gateway
