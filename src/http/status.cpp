#include "base/strings.hpp"
#include "http/server/message/message.hpp"

namespace berth::http {
namespace {

// It has exactly one value, so it is sent as a string.
constexpr std::string_view single_fact = "classification";

bj::value value_of(std::string_view name, const std::vector<std::string>& values) {
  if (name == single_fact && values.size() == 1) return bj::string(values.front());
  return encode(values);
}

bj::object details_of(const Error& error) {
  bj::object details;
  if (!error.issues.empty()) {
    bj::array issues;
    for (const Issue& issue : error.issues) {
      issues.push_back({{"path", issue.path}, {"message", issue.message}});
    }
    details["issues"] = std::move(issues);
  }
  for (const auto& [name, values] : error.facts) details[name] = value_of(name, values);
  return details;
}

}  // namespace

unsigned status_of(Errc code) {
  switch (kind_of(code)) {
    case ErrorKind::bad_input: return 400;
    case ErrorKind::unauthenticated: return 401;
    case ErrorKind::forbidden: return 403;
    case ErrorKind::not_found: return 404;
    case ErrorKind::wrong_method: return 405;
    case ErrorKind::slow_caller: return 408;
    case ErrorKind::conflict: return 409;
    case ErrorKind::changed_meanwhile: return 412;
    case ErrorKind::body_too_large: return 413;
    case ErrorKind::wrong_media: return 415;
    case ErrorKind::refused: return 422;
    case ErrorKind::over_limit: return 429;
    case ErrorKind::header_too_large: return 431;
    case ErrorKind::fault: return 500;
    case ErrorKind::place_failed: return 502;
    case ErrorKind::unavailable: return 503;
    case ErrorKind::timed_out: return 504;
    case ErrorKind::disk_full: return 507;
  }
  return 500;
}

Response error_response(const Error& error) {
  bj::object body{{"error", error.message}, {"code", name_of(error.code)}};
  if (!error.remedy.empty()) body["remedy"] = error.remedy;
  bj::object details = details_of(error);
  if (!details.empty()) body["details"] = std::move(details);

  Response response = json_response(status_of(error.code), body);
  const auto allow = error.facts.find("allow");
  if (error.code == Errc::method_not_allowed && allow != error.facts.end()) {
    response.headers.emplace_back("Allow", joined(allow->second));
  }
  if (response.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  if (response.status == 503) response.headers.emplace_back("Retry-After", "1");
  return response;
}

}  // namespace berth::http
