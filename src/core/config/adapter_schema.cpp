#include "core/config/adapter_schema.hpp"

#include "base/strings.hpp"
#include "core/config/adapters.hpp"

#include <algorithm>
#include <numeric>

namespace berth::core {
namespace {

// A text that can be an argv entry, where NUL would end it.
constexpr TextRule argument_text{.pattern = R"(^[^\x00]*$)",
                                 .says = "must not hold NUL",
                                 .wrong = [](std::string_view text) -> std::string_view {
                                   return text.contains('\0') ? "must not hold NUL" : "";
                                 }};

constexpr TextRule program_text{.pattern = R"(^[^\x00]*[^ \t\r\n\v\f\x00][^\x00]*$)",
                                .says = "is required: the program that the agent runs",
                                .wrong = [](std::string_view text) -> std::string_view {
                                  if (trimmed(text).empty())
                                    return "is required: the program that the agent runs";
                                  return text.contains('\0') ? "is not a string without NUL" : "";
                                }};

// Directories that can be in a PATH, where a colon separates entries.
constexpr TextRule path_entry{.pattern = R"(^/[^:\x00]*$)",
                              .says = "must be an absolute path without ':'",
                              .wrong = [](std::string_view text) -> std::string_view {
                                const bool fits = text.starts_with('/') && !text.contains(':') &&
                                                  !text.contains('\0');
                                return fits ? "" : "must be an absolute path without ':'";
                              }};

Note with_rule(Note note, const TextRule& rule, std::string_view wrong) {
  note.rule = &rule;
  note.wrong = wrong;
  return note;
}

Note text(Note note) {
  return with_rule(note, argument_text, "is not a string without NUL");
}

Note long_text(Note note) {
  note.format = "textarea";
  return text(note);
}

Note texts(Note note) {
  return with_rule(note, argument_text, "is not a list of strings without NUL");
}

Note amount(Note note) {
  note.low = 0;
  note.high = 1e9;
  note.wrong = "is not a number from 0 to 1000000000";
  return note;
}

template <class C>
void add_common_notes(Notes<C>& notes) {
  notes.insert(
      notes.end(),
      {{&C::prompt_template,
        long_text({.title = "Prompt template",
                   .says = "The prompt of a turn that brings none; {{agent.name}}, {{run.id}} and "
                           "{{context.KEY}} are filled in"})},
       {&C::path, with_rule({.title = "PATH",
                             .says = "Folders of the place in which programs are looked for first",
                             .advanced = true},
                            path_entry, "is not a list of absolute paths without ':'")},
       {&C::cwd, text({.title = "Working folder",
                       .says = "In the place of the run. Absent: its workspace"})},
       {&C::timeout_sec, amount({.title = "Time limit (seconds)", .says = "0 means no limit"})},
       {&C::grace_sec, amount({.title = "Grace time (seconds)",
                               .says = "From SIGTERM to SIGKILL",
                               .advanced = true})},
       {&C::env, {.title = "Variables", .says = "Names to texts or secret references"}}});
}

// What `claude` and `codex` have in common.
template <class C>
Notes<C> assistant_notes() {
  Note instructions =
      long_text({.title = "Instructions",
                 .says = "Text that the program is given with every turn, beside the prompt"});
  instructions.most = instructions_bytes_max;
  instructions.wrong = {};
  Notes<C> notes{
      {&C::command,
       text({.title = "Command",
             .says = "The program, by name or path, when it is not the usual one of the adapter"})},
      {&C::model, text({.title = "Model", .says = "Absent: the program's own default"})},
      {&C::instructions, instructions},
      {&C::instructions_file_path,
       text({.title = "Instructions file",
             .says = "A file on the server with such text. Only for companies that may use Local",
             .advanced = true})},
      {&C::unreachable_sec,
       amount({.title = "Unreachable limit (seconds)",
               .says = "A run whose model server cannot be reached for this long fails; 0 waits "
                       "for ever",
               .advanced = true})},
      {&C::extra_args,
       texts({.title = "More arguments",
              .says = "Passed to the program as they are. A permission flag here replaces "
                      "permissionMode",
              .advanced = true})}};
  add_common_notes(notes);
  return notes;
}

std::size_t distance(std::string_view one, std::string_view other) {
  std::vector<std::size_t> row(other.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= one.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= other.size(); ++j) {
      const std::size_t swapped = diagonal + (one[i - 1] == other[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({swapped, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

std::string lower_key(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '_' || c == '-') continue;
    out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

// Calls use.template operator()<Config>() for the adapter's config.
template <class Use>
auto with_config_of(AdapterType adapter, const Use& use) {
  switch (adapter) {
    case AdapterType::claude_local: return use.template operator()<ClaudeConfig>();
    case AdapterType::codex_local: return use.template operator()<CodexConfig>();
    case AdapterType::process: break;
  }
  return use.template operator()<ProcessConfig>();
}

AdapterDescription describe(AdapterType adapter, std::string title, std::string about) {
  return {adapter, std::move(title), std::move(about), adapter_config_schema(adapter)};
}

}  // namespace

Notes<ProcessConfig> ProcessConfig::notes() {
  Notes<ProcessConfig> notes{
      {&ProcessConfig::command,
       {.title = "Command",
        .says = "The program that is run, looked for in the PATH of the place",
        .required = true,
        .rule = &program_text,
        .missing = "is required: the program that the agent runs"}},
      {&ProcessConfig::args,
       texts({.title = "Arguments", .says = "One text per argument; no shell reads them"})}};
  add_common_notes(notes);
  return notes;
}

Notes<ClaudeConfig> ClaudeConfig::notes() {
  using C = ClaudeConfig;
  Notes<C> notes = assistant_notes<C>();
  notes.insert(notes.end(),
               {{&C::permission_mode,
                 {.title = "Permissions",
                  .says = "What the agent may do without asking: bypass is everything",
                  .usual = R"("bypass")"}},
                {&C::effort, text({.title = "Effort", .says = "low, medium, high, xhigh or max"})},
                {&C::max_turns_per_run,
                 amount({.title = "Turn limit",
                         .says = "The run fails when it needs more turns; 0 means no limit"})},
                {&C::dangerously_skip_permissions,
                 {.title = "Skip permissions (older setting)",
                  .says = "Used when permissionMode is absent: off is the mode default",
                  .advanced = true}}});
  return notes;
}

Notes<CodexConfig> CodexConfig::notes() {
  using C = CodexConfig;
  Notes<C> notes = assistant_notes<C>();
  notes.insert(
      notes.end(),
      {{&C::permission_mode,
        {.title = "Permissions",
         .says = "bypass is everything; workspaceWrite and readOnly use Codex' own sandbox where "
                 "one can be made",
         .usual = R"("bypass")"}},
       {&C::network_access,
        {.title = "Network access",
         .says = "Whether commands have a network with permissionMode workspaceWrite",
         .advanced = true}},
       {&C::model_reasoning_effort,
        text({.title = "Effort", .says = "low, medium, high or what the model knows"})},
       {&C::search, {.title = "Web search", .says = "Lets the model search the web"}},
       {&C::dangerously_bypass_approvals_and_sandbox,
        {.title = "Skip approvals and sandbox (older setting)",
         .says = "Used when permissionMode is absent: off is the mode workspaceWrite",
         .advanced = true}}});
  return notes;
}

std::vector<AdapterDescription> describe_adapters() {
  return {describe(AdapterType::process, "Process", "A program of your own"),
          describe(AdapterType::claude_local, "Claude Code", "Anthropic's `claude`, headless"),
          describe(AdapterType::codex_local, "Codex", "OpenAI's `codex exec`")};
}

bj::object adapter_config_schema(AdapterType adapter) {
  return with_config_of(adapter, []<class C>() { return config_schema<C>(UnknownKeys::refuse); });
}

void check_adapter_fields(AdapterType adapter, const bj::object& config, JsonIssues& issues) {
  with_config_of(adapter,
                 [&]<class C>() { read_config_into<C>(without_nulls<C>(config), issues); });
}

std::optional<std::string> nearest_key(const bj::object& known, std::string_view key) {
  constexpr std::size_t key_bytes_max = 64;  // a longer key is not a typo
  if (key.size() > key_bytes_max) return std::nullopt;
  const std::string wanted = lower_key(key);
  std::optional<std::string> best;
  std::size_t least = std::max<std::size_t>(2, wanted.size() / 3) + 1;
  for (const auto& [name, property] : known) {
    const std::string candidate = lower_key(name);
    const bool is_part =
        wanted.size() >= 4 && (candidate.contains(wanted) || wanted.contains(candidate));
    const std::size_t far = is_part ? 1 : distance(wanted, candidate);
    if (far >= least) continue;
    least = far;
    best = std::string{name};
  }
  return best;
}

}  // namespace berth::core
