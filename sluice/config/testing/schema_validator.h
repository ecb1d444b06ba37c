// As much of JSON Schema 2020-12 as api/config.schema.json uses, to hold the schema against the
// parser. A keyword that it does not know is an error, so that none is passed over.
#pragma once

#include <boost/json.hpp>
#include <string>

#include "sluice/config/document.h"

namespace sluice::config::testing {

// A YAML tree as JSON: plain whole numbers and truth values as such, all other text as strings.
boost::json::value ToJson(const Node& node);

// Why `value` is not valid, as "path: why"; empty when it is.
std::string Validate(const boost::json::value& value, const boost::json::object& schema,
                     const boost::json::object& root);

}  // namespace sluice::config::testing
