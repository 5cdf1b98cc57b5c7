#pragma once

#include "base/random.hpp"
#include "base/result.hpp"
#include "base/text.hpp"

#include <compare>
#include <functional>
#include <string>
#include <string_view>

namespace berth {

// Lower-case, hyphenated, any version: the format of the API that we keep.
bool is_uuid(std::string_view text);

// An existing id was parsed or generated: no empty state, no swapped arguments.
template <class Tag>
class Id {
 public:
  static Result<Id> parse(std::string_view text) {
    if (is_uuid(text)) return Id{std::string{text}};
    return fail(Errc::validation_failed, in_quotes(text) + " is not a valid " + Tag::noun + " id",
                "an id is a UUID, as the list of the objects shows it");
  }
  static Id make(Random& random, Time now) { return Id{make_uuid(random, now)}; }

  const std::string& str() const { return text_; }
  friend auto operator<=>(const Id&, const Id&) = default;

 private:
  explicit Id(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

}  // namespace berth

template <class Tag>
struct std::hash<berth::Id<Tag>> {
  std::size_t operator()(const berth::Id<Tag>& id) const {
    return std::hash<std::string>{}(id.str());
  }
};
