#include "base/json/json_keys.hpp"

#include "base/text.hpp"

#include <boost/json/parse.hpp>

#include <set>
#include <vector>

namespace berth {
namespace {

namespace bj = boost::json;

// The position after the string that begins at `start` with its quotation mark. The next unescaped
// quotation mark ends it: an even number of backslashes before it escape one another.
std::size_t end_of_string(std::string_view text, std::size_t start) {
  for (std::size_t quote = text.find('"', start + 1);; quote = text.find('"', quote + 1)) {
    std::size_t slashes = 0;
    while (text[quote - 1 - slashes] == '\\') ++slashes;
    if (slashes % 2 == 0) return quote + 1;
  }
}

// Outside strings every member has one colon, and nothing else has one.
std::size_t members_in(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '"') {
      at = end_of_string(text, at);
      continue;
    }
    if (text[at] == ':') ++count;
    ++at;
  }
  return count;
}

// NOLINTNEXTLINE(misc-no-recursion): the parser limits the depth
std::size_t members_in(const bj::value& value) {
  std::size_t count = 0;
  if (const bj::object* object = value.if_object()) {
    count = object->size();
    for (const auto& [key, member] : *object) count += members_in(member);
  } else if (const bj::array* array = value.if_array()) {
    for (const bj::value& item : *array) count += members_in(item);
  }
  return count;
}

// The path from the root to the position of a text search.
class KeyPath {
 public:
  void enter_object() { steps_.push_back({.is_object = true, .expects_key = true}); }
  void enter_array() { steps_.push_back({}); }
  void leave() { steps_.pop_back(); }
  void next() {
    Step& step = steps_.back();
    step.expects_key = step.is_object;
    ++step.index;
  }
  // False for a key that this object already has.
  bool take_string(std::string_view quoted) {
    if (steps_.empty() || !std::exchange(steps_.back().expects_key, false)) return true;
    const bj::value parsed = bj::parse(bj::string_view{quoted.data(), quoted.size()});
    Step& step = steps_.back();
    step.key.assign(parsed.get_string().data(), parsed.get_string().size());
    return step.seen.insert(step.key).second;
  }
  std::string pointer() const {
    std::string out;
    for (const Step& step : steps_) {
      out += "/" + (step.is_object ? escaped_in_pointer(step.key) : std::to_string(step.index));
    }
    return out;
  }

 private:
  struct Step {
    bool is_object = false;
    bool expects_key = false;
    std::size_t index = 0;
    std::string key = {};
    std::set<std::string> seen = {};
  };
  std::vector<Step> steps_;
};

std::optional<std::string> search(std::string_view text) {
  KeyPath path;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"') {
      const std::size_t end = end_of_string(text, at);
      if (!path.take_string(text.substr(at, end - at))) return path.pointer();
      at = end;
      continue;
    }
    if (c == '{') path.enter_object();
    if (c == '[') path.enter_array();
    if (c == '}' || c == ']') path.leave();
    if (c == ',') path.next();
    ++at;
  }
  return std::nullopt;
}

}  // namespace

std::string escaped_in_pointer(std::string_view key) {
  std::string out;
  for (const char c : clipped(key, 128)) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

std::optional<std::string> repeated_key(std::string_view text, const bj::value& value) {
  if (members_in(text) == members_in(value)) return std::nullopt;
  return search(text);
}

}  // namespace berth
