#include "core/output/run_summary.hpp"

#include "base/text.hpp"

namespace berth::core {
namespace {

constexpr std::size_t title_bytes_max = 160;
constexpr std::size_t error_bytes_max = 200;

bool needs_no_quotes(std::string_view word) {
  constexpr std::string_view plain = "_@%+=:,./-";
  return !word.empty() && std::ranges::all_of(word, [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           plain.contains(c);
  });
}

std::string shell_word(std::string_view word) {
  if (needs_no_quotes(word)) return std::string{word};
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

// In one line, for a table column.
std::string shortened(std::string_view text, std::size_t bytes_max) {
  std::string line{text.substr(0, bytes_max * 2)};
  std::ranges::replace_if(line, [](char c) { return c >= 0 && c < ' '; }, ' ');
  if (line.size() <= bytes_max) return line;
  return std::string{clipped(line, bytes_max)} + "…";
}

std::string title_of_command(const RunCommand& command) {
  if (command.prompt_excerpt) return shortened(*command.prompt_excerpt, title_bytes_max);
  return title_of(command.argv);
}

}  // namespace

std::string title_of(const std::vector<std::string>& argv) {
  if (argv.size() == 3 && argv[0] == "sh" && argv[1] == "-c") {
    return shortened(argv[2], title_bytes_max);
  }
  std::string line;
  for (const std::string& word : argv) {
    if (line.size() > title_bytes_max) break;
    if (!line.empty()) line += ' ';
    line += shell_word(std::string_view{word}.substr(0, title_bytes_max * 2));
  }
  return shortened(line, title_bytes_max);
}

RunSummary summary_of(ListedRun run) {
  std::optional<std::string> error;
  if (run.error) error = shortened(*run.error, error_bytes_max);
  return {.id = std::move(run.id),
          .company_id = std::move(run.company_id),
          .agent_id = std::move(run.agent_id),
          .environment_id = std::move(run.environment_id),
          .lease_id = std::move(run.lease_id),
          .status = run.status,
          .invocation_source = run.invocation_source,
          .name = std::move(run.name),
          .title = run.command ? title_of_command(*run.command) : std::string{},
          .error = std::move(error),
          .error_code = std::move(run.error_code),
          .exit_code = run.exit_code,
          .signal = std::move(run.signal),
          .usage_json = std::move(run.usage_json),
          .retry_of_run_id = std::move(run.retry_of_run_id),
          .cancel_requested_at = run.cancel_requested_at,
          .started_at = run.started_at,
          .finished_at = run.finished_at,
          .created_at = run.created_at,
          .updated_at = run.updated_at};
}

}  // namespace berth::core
