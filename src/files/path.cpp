#include "files/path.hpp"

#include "base/text.hpp"

#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>

namespace berth::files {
namespace {

constexpr std::size_t quoted_bytes_max = 512;

// A terminal interprets C0, DEL and C1 (U+0080 to U+009F) as commands.
bool is_misleading(std::string_view character) {
  const std::uint32_t point = code_point(character);
  return point < 0x20 || (point >= 0x7f && point < 0xa0) || is_unseen(point);
}

void append_hex(std::string& out, std::string_view bytes) {
  for (const char byte : bytes) {
    std::array<char, 8> text{};
    std::snprintf(text.data(), text.size(), "\\x%02x", static_cast<unsigned char>(byte));
    out += text.data();
  }
}

}  // namespace

Result<Path> Path::parse(std::string_view text, const Limits& limits) {
  if (text.size() > limits.path_bytes_max) {
    return refuse(text, "is longer than " + std::to_string(limits.path_bytes_max) + " bytes");
  }
  if (text.contains('\0')) return refuse(text, "holds a NUL byte");
  if (text.starts_with('/')) {
    return refuse(text, "is absolute", "name it relative to the root it lies in");
  }
  Path path;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('/', at), text.size());
    const std::string_view name = text.substr(at, end - at);
    at = end + 1;
    if (name.empty() || name == ".") continue;
    if (name == "..") return refuse(text, "holds '..'", "name it without '..'");
    if (name.size() > name_bytes_max) {
      return refuse(text, "holds a name of more than " + std::to_string(name_bytes_max) + " bytes");
    }
    path.names_.emplace_back(name);
  }
  if (path.names_.size() > limits.depth_max) {
    return refuse(text, "is deeper than " + std::to_string(limits.depth_max) + " folders");
  }
  return path;
}

std::string Path::text_of(std::size_t count) const {
  if (count == 0) return ".";
  std::string text = names_.front();
  for (std::size_t i = 1; i < count; ++i) text += "/" + names_[i];
  return text;
}

std::string escaped(std::string_view name) {
  std::string out;
  out.reserve(name.size());
  while (!name.empty()) {
    const std::size_t length = character_length(name);
    const std::string_view character = name.substr(0, length == 0 ? 1 : length);
    if (length == 0 || is_misleading(character)) {
      append_hex(out, character);
    } else if (character == "\\") {
      out += "\\\\";
    } else {
      out += character;
    }
    name.remove_prefix(character.size());
  }
  return out;
}

std::string unescaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    unsigned byte = 0;
    const bool is_hex =
        text.size() >= 4 && text.starts_with("\\x") &&
        std::from_chars(text.data() + 2, text.data() + 4, byte, 16).ptr == text.data() + 4;
    const bool is_backslash = text.starts_with("\\\\");
    out += is_hex ? static_cast<char>(byte) : text.front();
    text.remove_prefix(is_hex ? 4 : is_backslash ? 2 : 1);
  }
  return out;
}

std::unexpected<Error> refuse(std::string_view path, std::string_view rule, std::string remedy,
                              Errc code) {
  return fail(code, "path '" + escaped(clipped(path, quoted_bytes_max)) + "': " + std::string{rule},
              std::move(remedy));
}

}  // namespace berth::files
