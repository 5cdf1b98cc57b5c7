#include "core/config/adapter_schema.hpp"

#include <algorithm>
#include <numeric>

namespace berth::core {
namespace {

using enum FieldShape;

constexpr AdapterField process_fields[] = {
    {"command", text, "Command", "The program that is run, looked for in the PATH of the place"},
    {"args", text_list, "Arguments", "One text per argument; no shell reads them"},
};

constexpr AdapterField assistant_head[] = {
    {"command", text, "Command",
     "The program, by name or path, when it is not the usual one of the adapter"},
    {"model", text, "Model", "Absent: the program's own default"},
};

constexpr AdapterField assistant_tail[] = {
    {"instructions", long_text, "Instructions",
     "Text that the program is given with every turn, beside the prompt"},
    {"instructionsFilePath",
     text,
     "Instructions file",
     "A file on the server with such text. Only for companies that may use Local",
     {},
     {},
     true},
    {"unreachableSec",
     number,
     "Unreachable limit (seconds)",
     "A run whose model server cannot be reached for this long fails; 0 waits for ever",
     "120",
     {},
     true},
    {"extraArgs",
     text_list,
     "More arguments",
     "Passed to the program as they are. A permission flag here replaces permissionMode",
     {},
     {},
     true},
};

constexpr AdapterField claude_fields[] = {
    {"permissionMode", choice, "Permissions",
     "What the agent may do without asking: bypass is everything", R"("bypass")",
     "bypass acceptEdits auto dontAsk plan default"},
    {"effort", text, "Effort", "low, medium, high, xhigh or max"},
    {"maxTurnsPerRun", number, "Turn limit",
     "The run fails when it needs more turns; 0 means no limit", "0"},
    {"dangerouslySkipPermissions",
     flag,
     "Skip permissions (older setting)",
     "Used when permissionMode is absent: off is the mode default",
     {},
     {},
     true},
};

constexpr AdapterField codex_fields[] = {
    {"permissionMode", choice, "Permissions",
     "bypass is everything; workspaceWrite and readOnly use Codex' own sandbox where one can be "
     "made",
     R"("bypass")", "bypass workspaceWrite readOnly"},
    {"networkAccess",
     flag,
     "Network access",
     "Whether commands have a network with permissionMode workspaceWrite",
     "true",
     {},
     true},
    {"modelReasoningEffort", text, "Effort", "low, medium, high or what the model knows"},
    {"search", flag, "Web search", "Lets the model search the web", "false"},
    {"dangerouslyBypassApprovalsAndSandbox",
     flag,
     "Skip approvals and sandbox (older setting)",
     "Used when permissionMode is absent: off is the mode workspaceWrite",
     {},
     {},
     true},
};

constexpr AdapterField common_fields[] = {
    {"promptTemplate", long_text, "Prompt template",
     "The prompt of a turn that brings none; {{agent.name}}, {{run.id}} and {{context.KEY}} are "
     "filled in"},
    {"path",
     folder_list,
     "PATH",
     "Folders of the place in which programs are looked for first",
     {},
     {},
     true},
    {"cwd", text, "Working folder", "In the place of the run. Absent: its workspace"},
    {"timeoutSec", number, "Time limit (seconds)", "0 means no limit", "0"},
    {"graceSec", number, "Grace time (seconds)", "From SIGTERM to SIGKILL", "15", {}, true},
    {"env", object, "Variables", "Names to texts or secret references"},
};

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

bj::object schema_of(const AdapterField& field) {
  bj::object out;
  switch (field.shape) {
    case text: out["type"] = "string"; break;
    case long_text:
      out["type"] = "string";
      out["format"] = "textarea";
      break;
    case text_list:
    case folder_list:
      out["type"] = "array";
      out["items"] = bj::object{{"type", "string"}};
      break;
    case number:
      out["type"] = "number";
      out["minimum"] = 0;
      break;
    case flag: out["type"] = "boolean"; break;
    case object: out["type"] = "object"; break;
    case choice: {
      out["type"] = "string";
      bj::array names;
      for (const std::string_view name : choices_of(field)) names.emplace_back(name);
      out["enum"] = std::move(names);
      break;
    }
  }
  out["title"] = field.title;
  out["description"] = field.about;
  if (!field.usual.empty()) {
    if (auto usual = parse_json(field.usual)) out["default"] = *std::move(usual);
  }
  if (field.advanced) out["x-berth-advanced"] = true;
  return out;
}

AdapterDescription describe(AdapterType adapter, std::string title, std::string about) {
  bj::object properties;
  for (const AdapterField& field : adapter_fields(adapter)) {
    properties[field.key] = schema_of(field);
  }
  bj::object schema{
      {"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
  if (adapter == AdapterType::process) schema["required"] = bj::array{"command"};
  return {adapter, std::move(title), std::move(about), std::move(schema)};
}

}  // namespace

std::vector<AdapterField> adapter_fields(AdapterType adapter) {
  std::vector<AdapterField> out;
  const auto add = [&](std::span<const AdapterField> fields) {
    out.insert(out.end(), fields.begin(), fields.end());
  };
  if (adapter == AdapterType::process) {
    add(process_fields);
  } else {
    add(assistant_head);
    if (adapter == AdapterType::claude_local) add(claude_fields);
    if (adapter == AdapterType::codex_local) add(codex_fields);
    add(assistant_tail);
  }
  add(common_fields);
  return out;
}

std::vector<std::string_view> choices_of(const AdapterField& field) {
  std::vector<std::string_view> out;
  std::string_view rest = field.choices;
  while (!rest.empty()) {
    const std::size_t end = rest.find(' ');
    out.push_back(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return out;
}

std::vector<AdapterDescription> describe_adapters() {
  return {describe(AdapterType::process, "Process", "A program of your own"),
          describe(AdapterType::claude_local, "Claude Code", "Anthropic's `claude`, headless"),
          describe(AdapterType::codex_local, "Codex", "OpenAI's `codex exec`")};
}

std::optional<std::string> nearest_key(std::span<const AdapterField> fields, std::string_view key) {
  constexpr std::size_t key_bytes_max = 64;  // a longer key is not a typo
  if (key.size() > key_bytes_max) return std::nullopt;
  const std::string wanted = lower_key(key);
  std::optional<std::string> best;
  std::size_t least = std::max<std::size_t>(2, wanted.size() / 3) + 1;
  for (const AdapterField& field : fields) {
    const std::string known = lower_key(field.key);
    const bool is_part = wanted.size() >= 4 && (known.contains(wanted) || wanted.contains(known));
    const std::size_t far = is_part ? 1 : distance(wanted, known);
    if (far >= least) continue;
    least = far;
    best = std::string{field.key};
  }
  return best;
}

}  // namespace berth::core
