#include "http/server/message/target.hpp"

#include "http/server/message/message.hpp"

namespace berth::http {
namespace {

constexpr std::size_t query_parameter_count_max = 64;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_unreserved(char c) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return letter || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~';
}

// Removes and returns the text before the separator; all of it when there is none.
std::string_view cut(std::string_view& text, char separator) {
  const std::size_t at = text.find(separator);
  const std::string_view head = text.substr(0, at);
  text = at == std::string_view::npos ? std::string_view{} : text.substr(at + 1);
  return head;
}

Result<std::string_view> without_authority(std::string_view text, std::string_view host) {
  if (text.starts_with('/')) return text;
  const std::size_t scheme = text.find("://");
  if (scheme == std::string_view::npos) {
    return fail(Errc::bad_request, "the request target is not a path",
                "send a target that starts with '/'");
  }
  std::string_view rest = text.substr(scheme + 3);
  const std::size_t slash = std::min(rest.find_first_of("/?"), rest.size());
  if (!equal_ignoring_case(rest.substr(0, slash), host)) {
    return fail(Errc::bad_request, "the request target names another host than the Host header");
  }
  rest.remove_prefix(slash);
  return rest.starts_with('/') ? Result<std::string_view>{rest}
                               : fail(Errc::bad_request, "the request target has no path");
}

Result<std::vector<std::string>> parse_segments(std::string_view path) {
  std::vector<std::string> segments;
  path.remove_prefix(1);
  segments.reserve(8);
  while (true) {
    const bool last = path.find('/') == std::string_view::npos;
    BERTH_TRY(std::string segment, percent_decoded(cut(path, '/')));
    if (segment == "." || segment == "..") {
      return fail(Errc::bad_request, "the path has a '" + segment + "' segment",
                  "send the path that is meant");
    }
    segments.push_back(std::move(segment));
    if (last) return segments;
  }
}

// A plus sign is a space, as forms write it.
Result<std::string> query_decoded(std::string_view text) {
  std::string spaced{text};
  std::ranges::replace(spaced, '+', ' ');
  return percent_decoded(spaced);
}

}  // namespace

Result<std::string> percent_decoded(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
    if (high < 0 || low < 0) {
      return fail(Errc::bad_request, "the request target has a broken percent escape",
                  "write each escaped byte as '%' and two hexadecimal digits");
    }
    if (high == 0 && low == 0) {
      return fail(Errc::bad_request, "the request target contains a NUL byte");
    }
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

std::string percent_encoded(std::string_view text) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (is_unreserved(c)) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += digits[byte >> 4U];
    out += digits[byte & 15U];
  }
  return out;
}

Result<std::map<std::string, std::string>> parse_query(std::string_view text) {
  std::map<std::string, std::string> query;
  while (!text.empty()) {
    std::string_view value = cut(text, '&');
    if (value.empty()) continue;
    BERTH_TRY(std::string name, query_decoded(cut(value, '=')));
    BERTH_TRY(std::string decoded, query_decoded(value));
    if (query.size() == query_parameter_count_max) {
      return fail(Errc::bad_request, "the query has too many parameters");
    }
    const auto [place, fresh] = query.emplace(std::move(name), std::move(decoded));
    if (!fresh) {
      return std::unexpected(Error{Errc::validation_failed,
                                   "query parameter '" + place->first + "': is given twice",
                                   "send each parameter once",
                                   {{"/" + place->first, "is given twice"}}});
    }
  }
  return query;
}

Result<Target> parse_path(std::string_view text, std::string_view host) {
  if (text.contains('#')) {
    return fail(Errc::bad_request, "the request target contains a fragment");
  }
  BERTH_TRY(std::string_view rest, without_authority(text, host));
  const std::string_view path = cut(rest, '?');
  Target target{.path = std::string{path}, .segments = {}, .query_text = std::string{rest}};
  BERTH_TRY(target.segments, parse_segments(path));
  return target;
}

Result<Target> parse_target(std::string_view text, std::string_view host) {
  BERTH_TRY(Target target, parse_path(text, host));
  BERTH_TRY(target.query, parse_query(target.query_text));
  return target;
}

}  // namespace berth::http
