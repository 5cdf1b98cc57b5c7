#pragma once

#include "http/route.hpp"

#include <span>
#include <string_view>

// The web page, as the build has made it: files in every coding that they are served in.
namespace berth::http {

struct Asset {
  std::string_view path;  // "/" is the page itself; whatever else there is has a hash in its name
  std::string_view content_type;
  std::string_view etag;  // with its quotes
  std::string_view plain;
  std::string_view gzip;
  std::string_view brotli;
  // What stands inline in a page, as the content policy names it: "'sha256-…'". Empty for none.
  std::string_view inline_script = {};
  std::string_view inline_style = {};
};

// What is embedded in this program; nothing in a build without the page (-DBERTH_WEB=OFF).
std::span<const Asset> embedded_page();

// Answers every GET that no other route takes: files by their name, and the page itself to a
// browser, whatever its path, since the page has routes of its own. The files outlive the route.
Route page_route(std::span<const Asset> files);

// Whether an Accept-Encoding field takes the coding.
bool takes_coding(std::string_view accepted, std::string_view coding);

}  // namespace berth::http
