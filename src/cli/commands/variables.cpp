#include "cli/commands/variables.hpp"

#include "base/files.hpp"
#include "base/text.hpp"
#include "core/config/bindings.hpp"

#include <string_view>

namespace berth::cli {
namespace {

constexpr std::size_t variables_file_bytes_max = 1 << 20;
constexpr std::string_view secret_prefix = "secret:";

enum class Secrets { by_prefix, none };

Result<Variable> parse_one(const std::string& text, const std::string& where, const Variables& own,
                           Secrets secrets) {
  const std::size_t equals = text.find('=');
  Variable variable{.name = text.substr(0, equals), .value = {}};
  if (!core::is_env_name(variable.name)) {
    return fail(Errc::bad_request,
                where + ": '" + as_utf8(variable.name) + "' is not the name of a variable",
                "write NAME=value; a name has letters, digits and '_', and does not start with a "
                "digit");
  }
  if (equals == std::string::npos) {
    const auto found = own.find(variable.name);
    if (found == own.end()) {
      return fail(Errc::bad_request,
                  where + " " + variable.name + ": your own environment does not have it",
                  "export it, or write " + variable.name + "=value");
    }
    variable.value = found->second;
    return variable;
  }
  variable.value = text.substr(equals + 1);
  if (secrets == Secrets::by_prefix && variable.value.starts_with(secret_prefix)) {
    variable.value.erase(0, secret_prefix.size());
    variable.kind = Variable::Kind::secret;
  }
  return variable;
}

// One variable per line; blank lines and lines that begin with '#' are skipped. Values are plain
// text.
Result<> read_lines(const std::string& path, const Variables& own, std::vector<Variable>& into) {
  BERTH_TRY(const std::string text, read_file(path, variables_file_bytes_max));
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    if (line.ends_with('\r')) line.pop_back();
    const std::size_t first = line.find_first_not_of(" \t");
    if (first == std::string::npos || line[first] == '#') continue;
    const std::string where = "--env-file " + path + ":" + std::to_string(number);
    BERTH_TRY(Variable variable, parse_one(line.substr(first), where, own, Secrets::none));
    into.push_back(std::move(variable));
  }
  return {};
}

}  // namespace

void add_variable_flags(CLI::App& app, VariableFlags& flags) {
  app.add_option("--var", flags.given,
                 "a variable; NAME alone takes yours, NAME=secret:SECRET that of a secret")
      ->type_name("NAME[=VALUE]")
      ->allow_extra_args(false);
  app.add_option("--env-file", flags.files, "a file of NAME=VALUE lines")
      ->type_name("FILE")
      ->allow_extra_args(false);
}

Result<std::vector<Variable>> read_variables(const VariableFlags& flags, const Variables& own) {
  std::vector<Variable> variables;
  for (const std::string& path : flags.files) BERTH_DO(read_lines(path, own, variables));
  for (const auto* list : {&flags.given, &flags.old_given}) {
    for (const std::string& text : *list) {
      BERTH_TRY(Variable variable, parse_one(text, "--var", own, Secrets::by_prefix));
      variables.push_back(std::move(variable));
    }
  }
  for (const std::string& text : flags.secrets) {
    if (!text.contains('=')) {
      return fail(Errc::bad_request, "--env-secret '" + text + "': has no '='",
                  "write it as --var NAME=secret:SECRET");
    }
    BERTH_TRY(Variable variable, parse_one(text, "--env-secret", own, Secrets::none));
    variable.kind = Variable::Kind::secret;
    variables.push_back(std::move(variable));
  }
  return variables;
}

Result<bj::object> variables_in_json(Context& context, const std::vector<Variable>& variables) {
  bj::object out;
  for (const Variable& variable : variables) {
    if (variable.kind == Variable::Kind::text) {
      out[variable.name] = variable.value;
      continue;
    }
    BERTH_TRY(const std::string id, context.find_id(secret_kind(), variable.value));
    out[variable.name] = bj::object{{"type", "secret_ref"}, {"secretId", id}};
  }
  return out;
}

}  // namespace berth::cli
