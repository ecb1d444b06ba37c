#include "sluice/config/document.h"

#include <fmt/format.h>
#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/node/node.h>  // completes what parser.h only names
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <exception>
#include <sstream>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "sluice/config/read_file.h"
#include "sluice/config/source_text.h"

namespace sluice::config {
namespace {

std::size_t WeightOf(const Node& node) {
  std::size_t weight = 1 + node.text.size() / 64;
  for (const Node& item : node.items) weight += WeightOf(item);
  for (const Node::Entry& entry : node.entries)
    weight += WeightOf(entry.key) + WeightOf(entry.value);
  return weight;
}

// A quote that is never closed reaches to the end of the file; the library lets it pass. `text`
// begins at the scalar, perhaps with an anchor before the quote.
bool QuoteIsClosed(std::string_view text) {
  while (!text.empty() && (text.front() == '&' || text.front() == '!')) {
    text.remove_prefix(std::min(text.find_first_of(" \n"), text.size()));
    text.remove_prefix(std::min(text.find_first_not_of(" \n"), text.size()));
  }
  if (text.empty() || (text.front() != '"' && text.front() != '\'')) return true;  // a block scalar
  const char quote = text.front();
  for (std::size_t i = 1; i < text.size(); ++i) {
    const bool doubled = quote == '\'' && text.substr(i, 2) == "''";
    if (doubled || (quote == '"' && text[i] == '\\')) {
      ++i;  // stands for the next character, whatever that is
    } else if (text[i] == quote) {
      return true;
    }
  }
  return false;
}

// Builds the tree from the library's events. The library can be stopped only by an exception, so
// after the first complaint that makes the rest useless the events run into the void.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(const SourceText& source, Diagnostics& diagnostics)
      : source_(source), diagnostics_(diagnostics) {}

  // The root, when there was a document and it could be built.
  std::optional<Node> TakeRoot() { return given_up_ ? std::nullopt : std::move(root_); }
  [[nodiscard]] bool given_up() const { return given_up_; }
  // Where the innermost list or map that is still open begins; `otherwise` when there is none.
  [[nodiscard]] Location LastOpen(NodeKind kind, Location otherwise) const {
    for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame) {
      if (frame->node.kind == kind) return frame->node.location;
    }
    return otherwise;
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ < 2) return;
    const Location at = source_.At(mark.line, mark.column);
    if (source_.From(mark.line, 0).starts_with("---")) {
      GiveUp(at, "a second document begins here",
             "a configuration is one document; drop the `---`");
    } else {
      GiveUp(at, "this belongs to nothing that stands above it", "check its indentation");
    }
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Node node = NodeAt(mark, "");
    // Where no value was written the mark is already at what comes next.
    const std::string_view written = source_.From(mark.line, mark.column);
    const bool explicit_null = written.starts_with("~") || written.starts_with("null") ||
                               written.starts_with("Null") || written.starts_with("NULL");
    if (!explicit_null) node.location = last_;
    Add(std::move(node), anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    if (given_up_) return;
    Node node = NodeAt(mark, tag);
    node.kind = NodeKind::kText;
    node.text = value;
    node.quoted = tag != "?" && !tag.empty();
    if (tag == "!" && !QuoteIsClosed(source_.From(mark.line, mark.column))) {
      return GiveUp(node.location, "this quote is never closed", "");
    }
    Add(std::move(node), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (given_up_) return;
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      return GiveUp(source_.At(mark.line, mark.column),
                    "this alias stands inside what it stands for", "write it out");
    }
    if (!Spend(WeightOf(found->second), source_.At(mark.line, mark.column))) return;
    Place(found->second);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    Open(mark, tag, anchor, NodeKind::kList);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    Open(mark, tag, anchor, NodeKind::kMap);
  }
  void OnMapEnd() override { Close(); }

 private:
  // A list or map that is not closed yet.
  struct Frame {
    Node node;
    YAML::anchor_t anchor = 0;
    std::optional<Node> key;  // of a map, while its value is awaited; kNull: complained about
    absl::flat_hash_map<std::string, Location> keys;
  };

  Node NodeAt(const YAML::Mark& mark, const std::string& tag) {
    Node node;
    node.location = source_.At(mark.line, mark.column);
    const bool plain = tag.empty() || tag == "?" || tag == "!" || tag == "tag:yaml.org,2002:str" ||
                       tag == "tag:yaml.org,2002:seq" || tag == "tag:yaml.org,2002:map";
    if (!plain && !given_up_) {
      diagnostics_.Error(node.location, "tags mean nothing here", "leave the `!` and its name out");
    }
    return node;
  }

  void Open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, NodeKind kind) {
    if (given_up_) return;
    Frame frame;
    frame.node = NodeAt(mark, tag);
    frame.node.kind = kind;
    frame.anchor = anchor;
    if (frames_.size() >= static_cast<std::size_t>(kMaxDocumentDepth)) {
      return GiveUp(frame.node.location, fmt::format("nested more than {} deep", kMaxDocumentDepth),
                    "");
    }
    frames_.push_back(std::move(frame));
  }

  void Close() {
    if (given_up_) return;
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    Add(std::move(frame.node), frame.anchor);
  }

  // A node is complete.
  void Add(Node node, YAML::anchor_t anchor) {
    if (given_up_ || !Spend(1 + node.text.size() / 64, node.location)) return;
    if (anchor != 0) {
      if (!Spend(WeightOf(node), node.location)) return;
      anchors_[anchor] = node;
    }
    Place(std::move(node));
  }

  void Place(Node node) {
    last_ = node.location;
    if (frames_.empty()) {
      root_ = std::move(node);
      return;
    }
    Frame& frame = frames_.back();
    if (frame.node.kind == NodeKind::kList) {
      frame.node.items.push_back(std::move(node));
    } else if (!frame.key) {
      PlaceKey(frame, std::move(node));
    } else {
      if (frame.key->kind == NodeKind::kText) {
        frame.node.entries.push_back({*std::move(frame.key), std::move(node)});
      }
      frame.key.reset();
    }
  }

  void PlaceKey(Frame& frame, Node key) {
    if (key.kind != NodeKind::kText) {
      diagnostics_.Error(key.location, "a key must be text", "write `name: value`");
      key.kind = NodeKind::kNull;
    } else if (key.text == "<<" && !key.quoted) {
      diagnostics_.Error(key.location, "merge keys are not supported", "write the fields out");
      key.kind = NodeKind::kNull;
    } else if (const auto [first, added] = frame.keys.try_emplace(key.text, key.location); !added) {
      diagnostics_.Error(key.location,
                         fmt::format("{} is given twice; the first is in line {}", Quoted(key.text),
                                     first->second.line),
                         "keep one of the two");
      key.kind = NodeKind::kNull;
    }
    frame.key = std::move(key);
  }

  bool Spend(std::size_t weight, Location at) {
    weight_ += weight;
    if (weight_ <= kMaxDocumentNodes) return true;
    GiveUp(at, fmt::format("more than {} values", kMaxDocumentNodes),
           anchors_.empty() ? "" : "aliases count for all that they stand for");
    return false;
  }

  void GiveUp(Location at, std::string_view message, std::string_view hint) {
    if (given_up_) return;
    given_up_ = true;
    diagnostics_.Error(at, message, hint);
  }

  const SourceText& source_;
  Diagnostics& diagnostics_;
  std::vector<Frame> frames_;
  absl::flat_hash_map<YAML::anchor_t, Node> anchors_;
  std::optional<Node> root_;
  Location last_;  // of the last complete node
  std::size_t weight_ = 0;
  int documents_ = 0;
  bool given_up_ = false;
};

// The library's words are for those who write parsers.
struct Translation {
  std::string_view library;
  std::string_view message;
  std::string_view hint;
};
constexpr Translation kTranslations[] = {
    {"illegal map value", "a second `:` where the value of a field is expected",
     "check the indentation of this line and the one above; text with `: ` in it needs quotes"},
    {"illegal map key", "no field can begin here", "check the indentation of this line"},
    {"illegal block entry", "no list item can begin here", "check the indentation of this line"},
    {"end of map not found", "this line fits into none of the maps above it",
     "fields of one map have the same indentation"},
    {"end of sequence not found", "this line fits into none of the lists above it",
     "items of one list have the same indentation"},
    {"illegal flow end", "this bracket closes nothing", ""},
    {"unknown token", "no value can begin with this character", "put the text in quotes"},
    {"illegal EOF in scalar", "a quote above is never closed", ""},
    {"the referenced anchor is not defined", "this alias stands for nothing",
     "define it above with `&name`; text that begins with `*` needs quotes"},
    {"alias not found after *", "text that begins with `*` needs quotes", ""},
    {"anchor not found after &", "text that begins with `&` needs quotes", ""},
    {"illegal tab when looking for indentation", "a tab in the indentation", "use spaces"},
};

void ComplainFor(const YAML::Exception& error, const SourceText& source, const TreeBuilder& builder,
                 Diagnostics& diagnostics) {
  const int line = error.mark.line;
  const Location at = source.At(line, error.mark.column);
  if (dynamic_cast<const YAML::DeepRecursion*>(&error) != nullptr) {
    return diagnostics.Error(at, fmt::format("nested more than {} deep", kMaxDocumentDepth));
  }
  if (source.IndentedByTab(line) || (line > 0 && source.IndentedByTab(line - 1))) {
    const int tabbed = source.IndentedByTab(line) ? line : line - 1;
    return diagnostics.Error(source.At(tabbed, 0), "a tab in the indentation", "use spaces");
  }
  if (error.msg == "end of map flow not found") {
    return diagnostics.Error(builder.LastOpen(NodeKind::kMap, at), "this `{` is never closed");
  }
  if (error.msg == "end of sequence flow not found") {
    return diagnostics.Error(builder.LastOpen(NodeKind::kList, at), "this `[` is never closed");
  }
  for (const Translation& translation : kTranslations) {
    if (error.msg != translation.library) continue;
    return diagnostics.Error(at, translation.message, translation.hint);
  }
  diagnostics.Error(at, fmt::format("this is no YAML: {}", error.msg));
}

}  // namespace

const Node* Node::Find(std::string_view key) const {
  for (const Entry& entry : entries) {
    if (entry.key.text == key) return &entry.value;
  }
  return nullptr;
}

std::optional<Node> ParseDocument(std::string_view name, std::string_view text,
                                  Diagnostics& diagnostics) {
  const SourceText source(name, text, diagnostics);
  if (!source.usable()) return std::nullopt;

  TreeBuilder builder(source, diagnostics);
  try {
    std::istringstream stream(source.text());
    YAML::Parser parser(stream);
    while (!builder.given_up() && parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    if (!builder.given_up()) ComplainFor(error, source, builder, diagnostics);
    return std::nullopt;
  } catch (const std::exception& error) {
    diagnostics.Error({source.file(), 0, 0}, fmt::format("cannot be read: {}", error.what()));
    return std::nullopt;
  }
  if (builder.given_up()) return std::nullopt;

  std::optional<Node> root = builder.TakeRoot();
  if (!root || root->kind == NodeKind::kNull) {
    diagnostics.Error({source.file(), 0, 0}, "the file says nothing",
                      "to limit nothing on purpose write `rules: []`");
    return std::nullopt;
  }
  if (root->kind != NodeKind::kMap) {
    diagnostics.Error(root->location,
                      fmt::format("the file must begin with a field, got {}",
                                  root->kind == NodeKind::kList ? "a list" : Quoted(root->text)),
                      "write `rules:` and the list below it");
    return std::nullopt;
  }
  return root;
}

std::optional<Node> ReadDocument(const std::string& path, Diagnostics& diagnostics) {
  const auto text = ReadFile(path, kMaxDocumentBytes, std::nullopt, diagnostics);
  return text ? ParseDocument(path, *text, diagnostics) : std::nullopt;
}

}  // namespace sluice::config
