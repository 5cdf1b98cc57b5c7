// What an agent's program receives besides its config, and what it reported when it failed.
#include "base/files.hpp"
#include "base/json/peek.hpp"
#include "core/output/agent_failure.hpp"
#include "core/output/redaction.hpp"
#include "engine/environments/allowed_places.hpp"
#include "engine/runs/run_job.hpp"
#include "store/runs.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace berth::engine {
namespace {

constexpr std::size_t prompt_bytes_max = 64UL * 1024;
constexpr std::size_t excerpt_bytes_max = 160;

std::optional<std::string> filled_text_at(const bj::object& object, std::string_view key) {
  auto text = peek<std::string>(object, key);
  return text && !text->empty() ? std::move(text) : std::nullopt;
}

std::string first_line(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  text.remove_prefix(begin);
  const std::string_view line = text.substr(0, text.find_first_of("\r\n"));
  const std::string_view head = clipped(line, excerpt_bytes_max);
  return head.size() < line.size() ? std::string{head} + "..." : std::string{head};
}

std::unexpected<Error> instructions_missing(const std::string& path, const std::string& why) {
  return fail(Errc::agent_instructions_missing,
              "The instructions file " + in_quotes(path) + " cannot be read on the server: " + why,
              "correct instructionsFilePath, or put the text into `instructions` of the agent");
}

// A pipe or a device would block the server.
Result<std::string> read_instructions(const std::string& path) {
  const Fd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
  if (!file) return instructions_missing(path, std::generic_category().message(errno));
  struct stat facts{};
  if (::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
    return instructions_missing(path, "it is not a regular file");
  }
  if (facts.st_size > static_cast<off_t>(core::instructions_bytes_max)) {
    return instructions_missing(path, "it has " + std::to_string(facts.st_size) +
                                          " bytes; the limit is " +
                                          std::to_string(core::instructions_bytes_max));
  }
  Result<std::string> text = read_fd(file.get(), core::instructions_bytes_max, path);
  if (!text) return instructions_missing(path, text.error().message);
  return core::storable(*text);
}

std::optional<core::SessionUsage> usage_after(const core::Run& run) {
  if (!run.session_id_after || !run.result_json) return std::nullopt;
  const bool is_apart = run.result_json->contains("sessionUsage");
  // Older servers stored the session's total as the run's usage.
  const bj::object* sum = object_in(*run.result_json, is_apart ? "sessionUsage" : "usage");
  if (sum == nullptr) return std::nullopt;
  core::SessionUsage out{.session_id = *run.session_id_after,
                         .model = filled_text_at(*run.result_json, "model")};
  const auto count = [&](std::string_view key) -> std::int64_t {
    return peek<std::int64_t>(*sum, key).value_or(0);
  };
  out.usage = {.input_tokens = count("inputTokens"),
               .cached_input_tokens = count("cachedInputTokens"),
               .output_tokens = count("outputTokens"),
               .cache_write_input_tokens = count("cacheWriteInputTokens")};
  return out;
}

}  // namespace

core::InvocationPlace RunJob::invocation_place() const {
  const bj::object& config = place_->config;
  switch (environment_->driver) {
    case core::DriverKind::local: return {.is_root = ::geteuid() == 0};
    case core::DriverKind::ssh: return {.is_root = filled_text_at(config, "username") == "root"};
    case core::DriverKind::sandbox:
    case core::DriverKind::plugin: break;
  }
  return {.is_sandbox = true, .is_root = filled_text_at(config, "user") == "root"};
}

Task<std::optional<std::string>> RunJob::instructions() {
  const auto path = filled_text_at(agent_->adapter_config, "instructionsFilePath");
  if (!path || agent_->adapter_type == core::AdapterType::process) co_return std::nullopt;
  // A company that may run commands on this machine can read its files anyway. Other companies must
  // not read them through their agents.
  const core::Openings as_local{.environment = "instructionsFilePath", .local = true};
  const Result<> allowed = co_await tools_.services.store.read(
      [&](store::Session& s) { return expect_allowed(s, tools_.services, company_, as_local); });
  if (!allowed && allowed.error().code != Errc::not_allowed_here) {
    co_return std::unexpected(allowed.error());
  }
  if (!allowed) {
    co_return fail(Errc::not_allowed_here,
                   "instructionsFilePath names a file of the server, and the company may not use "
                   "the server's machine",
                   "put the text into `instructions` of the agent's config");
  }
  co_return read_instructions(*path);
}

Task<std::optional<core::SessionUsage>> RunJob::session_before() {
  const auto session = start_ ? start_->resumed_session : run_.value.session_id_before;
  if (!session || !agent_ || agent_->adapter_type != core::AdapterType::codex_local) {
    co_return std::nullopt;
  }
  const store::RunFilter filter{.agent_id = agent_->id};
  BERTH_CO_TRY(const auto page, co_await tools_.services.store.read([&](store::Session& s) {
    return store::list_runs(s, company_, filter, {.limit = 50});
  }));
  for (const auto& row : page.rows) {
    if (row.value.id == id_ || row.value.session_id_after != session) continue;
    if (auto found = usage_after(row.value)) co_return found;
  }
  co_return std::nullopt;
}

void RunJob::show_prompt(Plan& plan, bj::object& invocation) const {
  // What a custom program reads on stdin need not be human-readable text.
  if (plan.prompt.empty() || agent_->adapter_type == core::AdapterType::process) return;
  std::string text = plan.prompt;
  if (!hidden_.empty()) {
    const core::RedactionSet set{hidden_.all()};
    core::Redactor redactor{set};
    text = redactor.push(plan.prompt);
    text += redactor.flush();
  }
  invocation["prompt"] = core::storable(clipped(text, prompt_bytes_max));
  invocation["promptBytes"] = static_cast<std::int64_t>(plan.prompt.size());
  plan.shown.prompt_excerpt = core::storable(first_line(text));
}

std::optional<Error> RunJob::agent_failure() const {
  if (!agent_ || agent_->adapter_type == core::AdapterType::process || !output_) {
    return std::nullopt;
  }
  std::vector<std::string> denials;
  for (const bj::object& entry : denied_) {
    denials.push_back(filled_text_at(entry, "host").value_or("") + ":" +
                      encode_text(entry.contains("port") ? entry.at("port") : bj::value{}));
  }
  return core::explain_failure({.adapter = agent_->adapter_type,
                                .outcome = output_->agent_outcome(),
                                .signs = output_->agent_signs(),
                                .stderr_text = output_->facts().stderr_excerpt,
                                .denials = std::move(denials)});
}

}  // namespace berth::engine
