#include "http/server/call.hpp"

#include "base/digest.hpp"

#include <charconv>

namespace berth::http {
namespace {

constexpr std::size_t once_key_size_max = 200;
constexpr std::size_t request_id_size_max = 128;

std::unexpected<Error> wrong_header(const std::string& name, const std::string& what,
                                    std::string remedy) {
  return std::unexpected(Error{Errc::validation_failed,
                               "header '" + name + "': " + what,
                               std::move(remedy),
                               {{"/" + name, what}}});
}

bool is_visible(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
}

// Each part is preceded by its length, so that no two different requests look alike.
std::string fingerprint_of(const Request& request) {
  std::string whole;
  const auto add = [&](std::string_view part) {
    whole.append(std::to_string(part.size())).append(":").append(part);
  };
  add(name_of(request.verb));
  add(request.path);
  add(std::to_string(request.query.size()));
  for (const auto& [name, value] : request.query) {
    add(name);
    add(value);
  }
  add(request.body);
  return sha256_hex(whole);
}

Result<std::optional<core::OnceKey>> once_key(const Request& request) {
  const auto key = request.headers.find("idempotency-key");
  if (!key || request.verb != Verb::post) return std::nullopt;
  if (key->empty() || key->size() > once_key_size_max || !is_visible(*key)) {
    return wrong_header("Idempotency-Key", "is not 1 to 200 visible ASCII characters",
                        "send a key such as a UUID");
  }
  return core::OnceKey{.key = std::string{*key}, .fingerprint = fingerprint_of(request)};
}

Result<std::optional<std::int64_t>> wanted_version(const Request& request) {
  const auto field = request.headers.find("if-match");
  if (!field || *field == "*") return std::nullopt;
  std::int64_t version = 0;
  const bool quoted = field->size() > 2 && field->starts_with('"') && field->ends_with('"');
  const std::string_view digits = quoted ? field->substr(1, field->size() - 2) : "";
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), version);
  if (!quoted || error != std::errc{} || stop != digits.data() + digits.size() || version < 0) {
    return wrong_header("If-Match", "is not an entity tag of this server",
                        "send the ETag of the answer that showed the object");
  }
  return version;
}

Result<std::optional<core::RunId>> run_of(const Request& request) {
  for (const char* name : {"X-Berth-Run-Id", "X-Paperclip-Run-Id"}) {
    const auto field = request.headers.find(name);
    if (!field) continue;
    auto id = core::RunId::parse(*field);
    if (!id) return wrong_header(name, id.error().message, id.error().remedy);
    return *std::move(id);
  }
  return std::nullopt;
}

}  // namespace

Result<core::Call> make_call(core::Caller who, const Request& request) {
  core::Call call{.who = std::move(who), .request_id = request.request_id};
  BERTH_TRY(call.once, once_key(request));
  BERTH_TRY(call.if_version, wanted_version(request));
  // A token's proof overrides a header field's claim.
  call.run_id = call.who.run_id;
  if (!call.run_id) {
    BERTH_TRY(call.run_id, run_of(request));
  }
  return call;
}

bool is_request_id(std::string_view text) {
  const auto safe = [](char c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return letter || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' || c == ':';
  };
  return !text.empty() && text.size() <= request_id_size_max && std::ranges::all_of(text, safe);
}

}  // namespace berth::http
