#include "http/server/assets.hpp"

#include "base/strings.hpp"

namespace berth::http {
namespace {

constexpr std::string_view for_ever = "public, max-age=31536000, immutable";
constexpr std::string_view files_folder = "/assets/";

struct Coded {
  std::string_view bytes;
  std::string_view coding;  // empty: not compressed
};

Coded best_coding(const Asset& file, std::string_view accepted) {
  if (!file.brotli.empty() && takes_coding(accepted, "br")) return {file.brotli, "br"};
  if (!file.gzip.empty() && takes_coding(accepted, "gzip")) return {file.gzip, "gzip"};
  return {file.plain, ""};
}

// Nothing but our own files: no other host, no frame around us, and inline nothing but what the
// build has put there, by its hash.
std::string content_policy(const Asset& file) {
  std::string policy = "default-src 'none'; script-src 'self'";
  if (!file.inline_script.empty()) policy.append(" ").append(file.inline_script);
  policy += "; style-src 'self'";
  if (!file.inline_style.empty()) policy.append(" ").append(file.inline_style);
  policy +=
      "; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
      "frame-ancestors 'none'";
  return policy;
}

bool is_page(const Asset& file) {
  return file.path == "/";
}

// A path without a file is one of the page's own routes, but only for clients that can show a page.
// A program with a mistyped path gets an error.
const Asset* find_file(std::span<const Asset> files, const Request& request) {
  const auto found = std::ranges::find(files, std::string_view{request.path}, &Asset::path);
  if (found != files.end()) return &*found;
  const std::string_view accepted = request.headers.find("accept").value_or("");
  if (request.path.starts_with(files_folder) || !accepted.contains("text/html")) return nullptr;
  const auto page = std::ranges::find_if(files, is_page);
  return page != files.end() ? &*page : nullptr;
}

Response response_of(const Asset& file, const Request& request) {
  Response response{.content_type = std::string{file.content_type}};
  const auto add = [&](std::string_view name, std::string_view value) {
    response.headers.emplace_back(name, value);
  };
  add("ETag", file.etag);
  add("Vary", "Accept-Encoding");
  add("Cache-Control", is_page(file) ? "no-cache" : for_ever);
  add("Cross-Origin-Opener-Policy", "same-origin");
  add("Content-Security-Policy", content_policy(file));
  if (request.headers.find("if-none-match") == file.etag) {
    response.status = 304;
    return response;
  }
  const Coded coded = best_coding(file, request.headers.find("accept-encoding").value_or(""));
  if (!coded.coding.empty()) add("Content-Encoding", coded.coding);
  response.body = coded.bytes;
  return response;
}

Task<Response> serve_file(std::span<const Asset> files, const Request& request) {
  const Asset* file = find_file(files, request);
  if (file != nullptr) co_return response_of(*file, request);
  co_return fail(Errc::route_not_found, "no route has this path",
                 "the routes are listed in /api/openapi.json");
}

}  // namespace

bool takes_coding(std::string_view accepted, std::string_view coding) {
  while (!accepted.empty()) {
    const std::size_t end = std::min(accepted.find(','), accepted.size());
    const std::string_view item = accepted.substr(0, end);
    accepted.remove_prefix(std::min(end + 1, accepted.size()));
    const std::size_t weight = std::min(item.find(';'), item.size());
    if (!equal_ignoring_case(trimmed(item.substr(0, weight), " \t"), coding)) continue;
    const std::string_view quality = trimmed(item.substr(std::min(weight + 1, item.size())), " \t");
    return quality != "q=0" && !quality.starts_with("q=0.0");
  }
  return false;
}

Route page_route(std::span<const Asset> files) {
  const auto handler = [files](const core::Call& /*call*/, const Request& request,
                               const PathValues& /*values*/) { return serve_file(files, request); };
  return Route{.verb = Verb::get,
               .path = "/*",
               .needs = core::Permission::open,
               .tag = "page",
               .says = "The web page",
               .handler = PlainHandler{handler},
               .describe = {}};
}

}  // namespace berth::http
