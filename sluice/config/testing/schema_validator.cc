// g++ 12 with sanitizers believes that std::regex reads what it has not written.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

#include "sluice/config/testing/schema_validator.h"

#include <charconv>
#include <regex>

namespace sluice::config::testing {
namespace {

namespace json = boost::json;

std::string Text(const json::string& text) { return std::string(text.begin(), text.end()); }

bool HasType(const json::value& value, std::string_view type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "integer") return value.is_int64() || value.is_uint64();
  if (type == "boolean") return value.is_bool();
  return false;
}

class Validator {
 public:
  explicit Validator(const json::object& root) : root_(root) {}

  std::string Check(const json::value& value, const json::object& schema, const std::string& path) {
    for (const auto& [keyword, rule] : schema) {
      const std::string why = Apply(value, schema, std::string(keyword), rule, path);
      if (!why.empty()) return why;
    }
    return "";
  }

 private:
  std::string Apply(const json::value& value, const json::object& schema,
                    const std::string& keyword, const json::value& rule, const std::string& path) {
    const auto fail = [&](bool failed) { return failed ? path + ": " + keyword : std::string(); };
    if (keyword == "description" || keyword == "default" || keyword == "title" ||
        keyword == "$schema" || keyword == "$defs") {
      return "";
    }
    if (keyword == "$ref") return Check(value, Referenced(Text(rule.as_string())), path);
    if (keyword == "type") return fail(!TypeIsOneOf(value, rule));
    if (keyword == "const") return fail(value != rule);
    if (keyword == "enum") {
      const auto& words = rule.as_array();
      return fail(std::find(words.begin(), words.end(), value) == words.end());
    }
    if (keyword == "oneOf") return fail(MatchingAlternatives(value, rule.as_array(), path) != 1);
    if (value.is_string()) return ApplyToText(Text(value.as_string()), keyword, rule, fail);
    if (value.is_int64()) {
      if (keyword == "minimum") return fail(value.as_int64() < rule.as_int64());
      if (keyword == "maximum") return fail(value.as_int64() > rule.as_int64());
    }
    if (value.is_object()) return ApplyToObject(value.as_object(), schema, keyword, rule, path);
    if (value.is_array()) {
      if (keyword == "minItems") return fail(std::ssize(value.as_array()) < rule.as_int64());
      if (keyword == "maxItems") return fail(std::ssize(value.as_array()) > rule.as_int64());
      if (keyword == "items") return CheckItems(value.as_array(), rule.as_object(), path);
    }
    return KnownElsewhere(keyword) ? "" : "unknown keyword " + keyword;
  }

  template <typename Fail>
  std::string ApplyToText(const std::string& text, const std::string& keyword,
                          const json::value& rule, const Fail& fail) {
    if (keyword == "pattern") {
      return fail(!std::regex_search(text, std::regex(Text(rule.as_string()))));
    }
    if (keyword == "minLength") return fail(std::ssize(text) < rule.as_int64());
    if (keyword == "maxLength") return fail(std::ssize(text) > rule.as_int64());
    return KnownElsewhere(keyword) ? "" : "unknown keyword " + keyword;
  }

  std::string ApplyToObject(const json::object& object, const json::object& schema,
                            const std::string& keyword, const json::value& rule,
                            const std::string& path) {
    if (keyword == "required") {
      for (const auto& name : rule.as_array()) {
        if (!object.contains(name.as_string()))
          return path + ": required " + Text(name.as_string());
      }
    } else if (keyword == "minProperties") {
      if (std::ssize(object) < rule.as_int64()) return path + ": minProperties";
    } else if (keyword == "maxProperties") {
      if (std::ssize(object) > rule.as_int64()) return path + ": maxProperties";
    } else if (keyword == "properties") {
      for (const auto& [name, property] : rule.as_object()) {
        if (!object.contains(name)) continue;
        const std::string why =
            Check(object.at(name), property.as_object(), path + "/" + std::string(name));
        if (!why.empty()) return why;
      }
    } else if (keyword == "additionalProperties") {
      for (const auto& [name, value] : object) {
        const auto* properties = schema.if_contains("properties");
        if (properties != nullptr && properties->as_object().contains(name)) continue;
        const std::string here = path + "/" + std::string(name);
        if (rule.is_bool()) return here + ": additionalProperties";
        const std::string why = Check(value, rule.as_object(), here);
        if (!why.empty()) return why;
      }
    } else if (!KnownElsewhere(keyword)) {
      return "unknown keyword " + keyword;
    }
    return "";
  }

  std::string CheckItems(const json::array& items, const json::object& schema,
                         const std::string& path) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      const std::string why = Check(items[i], schema, path + "/" + std::to_string(i));
      if (!why.empty()) return why;
    }
    return "";
  }

  int MatchingAlternatives(const json::value& value, const json::array& alternatives,
                           const std::string& path) {
    int matching = 0;
    for (const auto& alternative : alternatives) {
      if (Check(value, alternative.as_object(), path).empty()) ++matching;
    }
    return matching;
  }

  const json::object& Referenced(const std::string& reference) {
    return root_.at("$defs").at(reference.substr(reference.rfind('/') + 1)).as_object();
  }

  static bool TypeIsOneOf(const json::value& value, const json::value& types) {
    if (types.is_string()) return HasType(value, Text(types.as_string()));
    for (const auto& type : types.as_array()) {
      if (HasType(value, Text(type.as_string()))) return true;
    }
    return false;
  }

  // Says something about values of another type.
  static bool KnownElsewhere(const std::string& keyword) {
    for (const auto* known : {"pattern", "minLength", "maxLength", "minimum", "maximum", "required",
                              "properties", "additionalProperties", "minProperties",
                              "maxProperties", "minItems", "maxItems", "items"}) {
      if (keyword == known) return true;
    }
    return false;
  }

  const json::object& root_;
};

}  // namespace

boost::json::value ToJson(const Node& node) {
  switch (node.kind) {
    case NodeKind::kNull:
      return nullptr;
    case NodeKind::kText: {
      if (node.quoted) return json::string(node.text);
      if (node.text == "true" || node.text == "false") return node.text == "true";
      std::int64_t number = 0;
      const char* end = node.text.data() + node.text.size();
      const auto [stop, error] = std::from_chars(node.text.data(), end, number);
      if (error == std::errc() && stop == end) return number;
      return json::string(node.text);
    }
    case NodeKind::kList: {
      json::array items;
      for (const Node& item : node.items) items.push_back(ToJson(item));
      return items;
    }
    case NodeKind::kMap: {
      json::object object;
      for (const auto& [key, value] : node.entries) object[key.text] = ToJson(value);
      return object;
    }
  }
  return nullptr;
}

std::string Validate(const json::value& value, const json::object& schema,
                     const json::object& root) {
  return Validator(root).Check(value, schema, "");
}

}  // namespace sluice::config::testing
