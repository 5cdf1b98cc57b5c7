#include "cli/commands/common.hpp"

namespace berth::cli {
namespace {

struct QuotaOptions {
  std::string named;
  std::optional<std::string> bytes;
  std::optional<std::string> runs;
  std::optional<std::string> payload_bytes;
  std::optional<std::string> memory_mb;
  std::optional<std::string> disk_mb;
  std::optional<std::string> pids;
  std::optional<std::string> sandboxes;
  std::optional<std::string> warm_sandboxes;
};

struct Limit {
  const char* flag;
  const char* key;
  std::optional<std::string> QuotaOptions::* given;
  const char* help;
};
constexpr Limit limits[] = {
    {"--bytes", "bytesMax", &QuotaOptions::bytes, "logs and payloads of its runs"},
    {"--runs", "runsMax", &QuotaOptions::runs, "runs that wait or work"},
    {"--payload-bytes", "payloadBytesMax", &QuotaOptions::payload_bytes, "payload of one wakeup"},
    {"--memory-mb", "memoryMbMax", &QuotaOptions::memory_mb, "memory of its sandboxes together"},
    {"--disk-mb", "diskMbMax", &QuotaOptions::disk_mb, "disk of its sandboxes together"},
    {"--pids", "pidsMax", &QuotaOptions::pids, "processes of its sandboxes together"},
    {"--sandboxes", "sandboxesMax", &QuotaOptions::sandboxes, "sandboxes at a time"},
    {"--warm-sandboxes", "warmSandboxesMax", &QuotaOptions::warm_sandboxes,
     "sandboxes that its environments keep ready"},
};

Result<> company_usage(Context& context, const std::string& named) {
  BERTH_TRY(const std::string id, context.find_id(company_kind(), named));
  BERTH_TRY(const bj::value found, context.get("/api/companies/" + id + "/usage"));
  context.printer().object(found);
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

Result<> change_quotas(Context& context, const QuotaOptions& options) {
  bj::object body;
  for (const Limit& limit : limits) {
    BERTH_DO(set_limit(body, limit.key, options.*limit.given, limit.flag));
  }
  if (body.empty()) return fail(Errc::bad_request, "nothing to change was given");
  BERTH_TRY(const std::string id, context.find_id(company_kind(), options.named));
  BERTH_TRY(
      const bj::value changed,
      context.send({.method = "PATCH", .path = "/api/companies/" + id + "/quota", .body = body}));
  context.printer().object(changed);
  return {};
}

}  // namespace

void add_company_usage_commands(CommandTree& tree, CLI::App& group) {
  const auto named = std::make_shared<std::string>();
  CLI::App& shows = tree.leaf(group, "usage", "show what it stores and runs, beside its quota",
                              "berth company usage Acme",
                              [named](Context& context) { return company_usage(context, *named); });
  shows.add_option("company", *named, "its name, or its id or an end of it")->required();

  const auto wanted = std::make_shared<QuotaOptions>();
  CLI::App& sets =
      tree.leaf(group, "quota", "change its quota: 0 is without a limit",
                "berth company quota Acme --bytes 21474836480 --runs 500",
                [wanted](Context& context) { return change_quotas(context, *wanted); });
  sets.add_option("company", wanted->named, "its name, or its id or an end of it")->required();
  for (const Limit& limit : limits) {
    sets.add_option(limit.flag, (*wanted).*limit.given,
                    std::string{limit.help} + "; '' follows the instance")
        ->type_name("NUMBER");
  }
}

}  // namespace berth::cli
