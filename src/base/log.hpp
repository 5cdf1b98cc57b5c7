#pragma once

#include "base/id.hpp"
#include "base/result.hpp"
#include "base/secret.hpp"
#include "base/text.hpp"

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

// log::info("run.started", {{"run", id}, {"attempt", 1}}): an event has a stable name and fields,
// never prose.
namespace berth::log {

enum class Level { debug, info, warn, error, off };
enum class Format { text, json };

// A field's value: anything JSON can hold, or an id. A Secret is neither, so logging one does not
// compile.
class Value {
 public:
  Value(std::string_view text) : json_(boost::json::string(as_utf8(text))) {}
  Value(const std::string& text) : Value(std::string_view{text}) {}
  Value(const char* text) : Value(std::string_view{text}) {}
  Value(bool flag) : json_(flag) {}
  template <class T>
    requires(std::integral<T> || std::floating_point<T>)
  Value(T number) : json_(number) {}
  template <class Tag>
  Value(const Id<Tag>& id) : Value(id.str()) {}
  Value(Errc code) : Value(name_of(code)) {}

  const boost::json::value& json() const { return json_; }

 private:
  boost::json::value json_;
};
static_assert(!std::convertible_to<Secret, Value>, "a secret must not reach the log");

using Fields = std::initializer_list<std::pair<std::string_view, Value>>;

// Set once, in main, before other threads exist. Lines go to standard error.
void configure(Level lowest, Format format);
bool enabled(Level level);
void write(Level level, std::string_view event, Fields fields);

inline void debug(std::string_view event, Fields fields = {}) {
  if (enabled(Level::debug)) write(Level::debug, event, fields);
}
inline void info(std::string_view event, Fields fields = {}) {
  write(Level::info, event, fields);
}
inline void warn(std::string_view event, Fields fields = {}) {
  write(Level::warn, event, fields);
}
inline void error(std::string_view event, Fields fields = {}) {
  write(Level::error, event, fields);
}

}  // namespace berth::log
