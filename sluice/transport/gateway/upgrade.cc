#include "sluice/transport/gateway/upgrade.h"

#include <algorithm>

#include "sluice/base/ascii.h"

namespace sluice::gateway {
namespace {

using net::FieldId;

std::string_view NameOf(std::string_view protocol) {
  return protocol.substr(0, protocol.find('/'));
}

template <class Visit>
void ForEachProtocol(const net::MessageHead& head, Visit visit) {
  for (const net::Field& field : head.fields) {
    if (field.id == FieldId::upgrade) net::ForEachListItem(field.value, visit);
  }
}

}  // namespace

void ReadUpgrade(const net::RequestHead& head, std::span<const std::string> allowed,
                 std::string* asked) {
  asked->clear();
  if (!head.upgrade || head.minor_version == 0) return;
  ForEachProtocol(head, [&](std::string_view protocol) {
    const auto is_it = [&](const std::string& other) {
      return EqualsIgnoringCase(other, NameOf(protocol));
    };
    if (std::none_of(allowed.begin(), allowed.end(), is_it)) return;
    if (!asked->empty()) asked->append(", ");
    asked->append(protocol);
  });
}

bool ChangesAsAsked(const net::ResponseHead& head, std::string_view asked) {
  bool named = false;
  bool strange = false;
  ForEachProtocol(head, [&](std::string_view protocol) {
    named = true;
    bool found = false;
    net::ForEachListItem(asked, [&](std::string_view one) {
      found = found || EqualsIgnoringCase(NameOf(one), NameOf(protocol));
    });
    strange = strange || !found;
  });
  return named && !strange && head.upgrade;
}

}  // namespace sluice::gateway
