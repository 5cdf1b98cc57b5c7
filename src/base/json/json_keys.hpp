#pragma once

#include <boost/json/value.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace berth {

// The JSON pointer of a key that an object has twice; `text` is what `value` was parsed from. A
// parsed object has each key once, so the text is searched only if its member count differs from
// the value's.
std::optional<std::string> repeated_key(std::string_view text, const boost::json::value& value);

// A key as written in a JSON pointer.
std::string escaped_in_pointer(std::string_view key);

}  // namespace berth
