#include "cli/print/failure.hpp"

#include "base/json/json.hpp"
#include "cli/print/plain_words.hpp"
#include "cli/print/table.hpp"

namespace berth::cli {

ExitCode exit_code_of(Errc code) {
  const std::string_view name = name_of(code);
  if (name.ends_with("_not_found")) return ExitCode::not_found;
  if (name.ends_with("_taken")) return ExitCode::conflict;
  switch (code) {
    case Errc::bad_request: return ExitCode::usage;
    case Errc::unauthenticated:
    case Errc::forbidden:
    case Errc::not_allowed_here:
    case Errc::untrusted_host:
    case Errc::local_user_not_trusted:
    case Errc::untrusted_origin: return ExitCode::not_allowed;
    case Errc::conflict:
    case Errc::precondition_failed:
    case Errc::idempotency_key_reused:
    case Errc::company_in_use:
    case Errc::image_in_use:
    case Errc::environment_local_exists:
    case Errc::environment_delete_blocked:
    case Errc::environment_pending_sandbox_cleanup:
    case Errc::secret_version_stale: return ExitCode::conflict;
    case Errc::server_unreachable: return ExitCode::unreachable;
    default: return ExitCode::failure;
  }
}

std::string error_text(const Error& error, bool colour) {
  const auto label = [&](std::string_view text, Paint paint) {
    return colour ? painted(text, paint) : std::string{text};
  };
  std::string text =
      label("error:", Paint::red) + " " + printable(plain_sentence(error.message)) + "\n";
  for (const Issue& issue : error.issues) {
    text += "  " + printable(issue.path) + ": " + printable(issue.message) + "\n";
  }
  for (const auto& [name, values] : error.facts) {
    text += "  " + printable(name) + ":\n";
    for (const std::string& value : values) text += "    " + printable(value) + "\n";
  }
  text += "  " + label("code:", Paint::dim) + " " + std::string{name_of(error.code)} + "\n";
  if (!error.remedy.empty()) {
    text +=
        "  " + label("fix:", Paint::green) + " " + printable(plain_sentence(error.remedy)) + "\n";
  }
  return text;
}

std::string error_json(const Error& error) {
  bj::object details;
  if (!error.issues.empty()) {
    bj::array issues;
    for (const Issue& issue : error.issues) {
      issues.push_back(bj::object{{"path", issue.path}, {"message", issue.message}});
    }
    details["issues"] = std::move(issues);
  }
  for (const auto& [name, values] : error.facts) details[name] = encode(values);
  bj::object out{{"error", error.message}, {"code", bj::string(name_of(error.code))}};
  if (!error.remedy.empty()) out["remedy"] = error.remedy;
  if (!details.empty()) out["details"] = std::move(details);
  return encode_text(out) + "\n";
}

}  // namespace berth::cli
