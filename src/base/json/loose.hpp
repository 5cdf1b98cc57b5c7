#pragma once

#include "base/json/json.hpp"

#include <optional>
#include <string>
#include <string_view>

// Reads JSON whose shape has not been validated: a value of another type counts as absent.
namespace berth::loose {

std::optional<std::string> text_at(const bj::object& object, std::string_view key);
// Exactly true: neither 1 nor "true".
bool is_true_at(const bj::object& object, std::string_view key);

}  // namespace berth::loose
