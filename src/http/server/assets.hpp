#pragma once

#include "http/route.hpp"

#include <span>
#include <string_view>

// The web page, as built: files in every coding that they are served in.
namespace berth::http {

struct Asset {
  std::string_view path;  // "/" is the page itself; all others have a hash in their name
  std::string_view content_type;
  std::string_view etag;  // with its quotes
  std::string_view plain;
  std::string_view gzip;
  std::string_view brotli;
  // The inline script of a page, as the content policy names it: "'sha256-…'". Empty for none.
  std::string_view inline_script = {};
  std::string_view inline_style = {};
};

// The page embedded in this program; empty in a build without the page (-DBERTH_WEB=OFF).
std::span<const Asset> embedded_page();

// Answers every GET that no other route matches: files by name. A browser gets the page itself,
// whatever the path, because the page has its own routes. The files outlive the route.
Route page_route(std::span<const Asset> files);

// Whether an Accept-Encoding field accepts the coding.
bool takes_coding(std::string_view accepted, std::string_view coding);

}  // namespace berth::http
