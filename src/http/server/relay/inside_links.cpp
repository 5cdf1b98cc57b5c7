#include "http/server/relay/inside_links.hpp"

#include "http/server/message/message.hpp"

#include <algorithm>
#include <vector>

namespace berth::http {
namespace {

// Browsers treat '\' as '/', and drop tabs and line ends everywhere.
bool is_ambiguous(std::string_view reference) {
  return std::ranges::any_of(reference,
                             [](unsigned char c) { return c <= 0x20 || c >= 0x7f || c == '\\'; });
}

// A dot in a path may be written as %2e.
std::string with_plain_dots(std::string_view segment) {
  std::string out;
  while (!segment.empty()) {
    const bool is_dot = equal_ignoring_case(segment.substr(0, 3), "%2e");
    out += is_dot ? '.' : segment.front();
    segment.remove_prefix(is_dot ? 3 : 1);
  }
  return out;
}

// RFC 3986, 5.2.4: an absolute path without "." and "..", none of which leads above the root.
std::string without_dots(std::string_view path) {
  std::vector<std::string_view> kept;
  while (!path.empty()) {
    path.remove_prefix(1);  // the slash before each segment
    const std::string_view segment = path.substr(0, path.find('/'));
    path.remove_prefix(segment.size());
    const std::string plain = with_plain_dots(segment);
    const bool is_dots = plain == "." || plain == "..";
    if (plain == ".." && !kept.empty()) kept.pop_back();
    if (!is_dots) kept.push_back(segment);
    if (is_dots && path.empty()) kept.emplace_back();
  }
  std::string out;
  for (const std::string_view segment : kept) out.append("/").append(segment);
  return out.empty() ? "/" : out;
}

// The rest of a URL after its authority, if that is the name of the server inside. For the client
// that name would be its own machine.
std::optional<std::string_view> behind_own_name(std::string_view url, unsigned short port) {
  constexpr std::string_view scheme = "http:";
  if (equal_ignoring_case(url.substr(0, scheme.size()), scheme)) url.remove_prefix(scheme.size());
  if (!url.starts_with("//")) return std::nullopt;
  url.remove_prefix(2);
  const std::size_t end = std::min(url.find_first_of("/?#"), url.size());
  const std::string_view authority = url.substr(0, end);
  const bool is_usual = port == 80 && equal_ignoring_case(authority, "localhost");
  const std::string own = "localhost:" + std::to_string(port);
  if (!is_usual && !equal_ignoring_case(authority, own)) return std::nullopt;
  return url.substr(end);
}

bool has_scheme(std::string_view reference) {
  return reference.substr(0, reference.find_first_of("/?#")).contains(':');
}

}  // namespace

std::optional<std::string> reference_inside(std::string_view reference, const InsidePlace& place) {
  if (is_ambiguous(reference)) return std::nullopt;
  if (has_scheme(reference) || reference.starts_with("//")) {
    const auto rest = behind_own_name(reference, place.port);
    if (!rest) return std::nullopt;
    const std::string inside = (rest->starts_with('/') ? "" : "/") + std::string{*rest};
    // "//" after the name is a path there, but would be an authority if it stood alone.
    const std::size_t end = std::min(inside.find_first_of("?#"), inside.size());
    return std::string{place.prefix} + without_dots(std::string_view{inside}.substr(0, end)) +
           inside.substr(end);
  }
  const std::size_t end = std::min(reference.find_first_of("?#"), reference.size());
  const std::string_view asked = place.path.substr(0, place.path.find('?'));
  std::string path{reference.substr(0, end)};
  if (path.empty()) {
    path = asked;
  } else if (path.front() != '/') {
    path.insert(0, asked.substr(0, asked.rfind('/') + 1));
  }
  return std::string{place.prefix} + without_dots(path) + std::string{reference.substr(end)};
}

std::optional<std::string> links_inside(std::string_view field, const InsidePlace& place) {
  std::string out;
  bool is_quoted = false;
  while (!field.empty()) {
    const char c = field.front();
    if (is_quoted && c == '\\') {
      out.append(field.substr(0, 2));
      field.remove_prefix(std::min<std::size_t>(2, field.size()));
      continue;
    }
    if (c == '"') is_quoted = !is_quoted;
    if (is_quoted || c != '<') {
      out += c;
      field.remove_prefix(1);
      continue;
    }
    const std::size_t end = field.find('>');
    if (end == std::string_view::npos) return std::nullopt;
    const auto target = reference_inside(field.substr(1, end - 1), place);
    if (!target) return std::nullopt;
    out.append("<").append(*target).append(">");
    field.remove_prefix(end + 1);
  }
  return is_quoted ? std::nullopt : std::optional{std::move(out)};
}

}  // namespace berth::http
