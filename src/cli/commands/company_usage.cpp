#include "cli/commands/common.hpp"

namespace berth::cli {
namespace {

struct QuotaOptions {
  std::string named;
  std::optional<std::string> bytes;
  std::optional<std::string> runs;
  std::optional<std::string> payload_bytes;
};

Result<> usage(Session& session, const std::string& named) {
  BERTH_TRY(const std::string id, session.find_id(company_kind(), named));
  BERTH_TRY(const bj::value found, session.get("/api/companies/" + id + "/usage"));
  session.printer().object(found);
  return {};
}

Result<> set_limit(bj::object& body, const char* key, const std::optional<std::string>& text,
                   const std::string& flag) {
  if (!text) return {};
  if (text->empty()) {
    body[key] = nullptr;
    return {};
  }
  const Result<bj::value> number = parse_json(*text);
  if (!number || !number->is_int64()) {
    return fail(Errc::bad_request, flag + " '" + *text + "': is not a whole number",
                "give a number; 0 is without a limit, '' follows the instance");
  }
  body[key] = *number;
  return {};
}

Result<> change(Session& session, const QuotaOptions& options) {
  bj::object body;
  BERTH_DO(set_limit(body, "bytesMax", options.bytes, "--bytes"));
  BERTH_DO(set_limit(body, "runsMax", options.runs, "--runs"));
  BERTH_DO(set_limit(body, "payloadBytesMax", options.payload_bytes, "--payload-bytes"));
  if (body.empty()) return fail(Errc::bad_request, "nothing to change was given");
  BERTH_TRY(const std::string id, session.find_id(company_kind(), options.named));
  BERTH_TRY(
      const bj::value changed,
      session.send({.method = "PATCH", .path = "/api/companies/" + id + "/quota", .body = body}));
  session.printer().object(changed);
  return {};
}

}  // namespace

void add_company_usage_commands(CommandTree& tree, CLI::App& group) {
  const auto named = std::make_shared<std::string>();
  CLI::App& shows = tree.leaf(group, "usage", "show what it stores and runs, beside its quota",
                              "berth company usage Acme",
                              [named](Session& session) { return usage(session, *named); });
  shows.add_option("company", *named, "its id, name or the start of its id")->required();

  const auto wanted = std::make_shared<QuotaOptions>();
  CLI::App& sets = tree.leaf(group, "quota", "change its quota: 0 is without a limit",
                             "berth company quota Acme --bytes 21474836480 --runs 500",
                             [wanted](Session& session) { return change(session, *wanted); });
  sets.add_option("company", wanted->named, "its id, name or the start of its id")->required();
  sets.add_option("--bytes", wanted->bytes,
                  "logs and payloads of its runs; '' follows the instance")
      ->type_name("NUMBER");
  sets.add_option("--runs", wanted->runs, "runs that wait or work; '' follows the instance")
      ->type_name("NUMBER");
  sets.add_option("--payload-bytes", wanted->payload_bytes,
                  "payload of one wakeup; '' follows the instance")
      ->type_name("NUMBER");
}

}  // namespace berth::cli
