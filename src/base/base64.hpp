#pragma once

#include <optional>
#include <string>
#include <string_view>

// Bytes inside JSON: the alphabet of RFC 4648 section 4, with padding.
namespace berth {

std::string base64(std::string_view bytes);
// Nothing when the text is not exactly what base64() writes.
std::optional<std::string> parse_base64(std::string_view text);

}  // namespace berth
