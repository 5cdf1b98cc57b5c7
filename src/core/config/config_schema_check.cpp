// The only file that uses the validator: its headers are heavy, and it reports errors by
// exceptions.
#include "core/config/config_schema.hpp"
#include "core/config/pattern.hpp"

#include <stdexcept>

namespace {

// RE2 bounds one match, not their sum: a schema has many patterns, and a config many values. The
// budget is about a tenth of a second, because a step takes a few nanoseconds.
constexpr std::size_t steps_max = 20'000'000;
// The cost of compiling one instruction, in match steps.
constexpr std::size_t compile_bytes = 100;

thread_local std::size_t steps_left = 0;

void begin_budget() {
  steps_left = steps_max;
}

void pay(std::size_t steps) {
  if (steps > steps_left) {
    throw std::invalid_argument{"its patterns take too long"};  // allowed: as std::regex does
  }
  steps_left -= steps;
}

}  // namespace

// The validator matches with std::regex, whose time may double with each character, and offers no
// way to choose another engine. Inside its namespace, this `std` replaces the real one: it has the
// same names, with Pattern in place of std::regex.
namespace valijson::std {

using namespace ::std;

class Regex {
 public:
  explicit Regex(const string& text) : pattern_(compiled(text)) {}

  const berth::core::Pattern& pattern() const { return pattern_; }

 private:
  static berth::core::Pattern compiled(const string& text) {
    berth::Result<berth::core::Pattern> made = berth::core::Pattern::compile(text);
    if (!made) throw invalid_argument{made.error().message};  // allowed: as std::regex does
    pay(made->steps_for(compile_bytes));
    return *::std::move(made);
  }

  berth::core::Pattern pattern_;
};

struct Matches {
  struct Group {
    string text;
    string str() const { return text; }
  };
  vector<string> groups = {};

  Group operator[](size_t at) const { return {groups.at(at)}; }
};

using regex = Regex;
using smatch = Matches;

inline bool regex_search(const string& text, const regex& with) {
  pay(with.pattern().steps_for(text.size()));
  return with.pattern().is_found_in(text);
}

inline bool regex_match(const string& text, smatch& found, const regex& with) {
  pay(with.pattern().steps_for(text.size()));
  found.groups = with.pattern().groups_of(text);
  return !found.groups.empty();
}

inline bool regex_match(const string& text, const regex& with) {
  smatch ignored;
  return regex_match(text, ignored, with);
}

}  // namespace valijson::std

// Without this, the validator ends the process on a schema that it cannot read.
#define VALIJSON_USE_EXCEPTIONS 1
#include <valijson/adapters/boost_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

namespace berth::core::schema_detail {
namespace {

using Adapter = valijson::adapters::BoostJsonAdapter;

constexpr std::size_t issues_max = 50;

void populate(const bj::value& document, valijson::Schema& schema) {
  valijson::SchemaParser parser{valijson::SchemaParser::kDraft7};
  const Adapter adapter{document};
  parser.populateSchema(adapter, schema);
}

// "[registries]" and "[0]", after an entry for the document itself.
ConfigPath path_of(const std::vector<std::string>& context) {
  ConfigPath path;
  for (std::size_t i = 1; i < context.size(); ++i) {
    const std::string_view step = context[i];
    const bool framed = step.size() >= 2 && step.front() == '[' && step.back() == ']';
    path = path / (framed ? step.substr(1, step.size() - 2) : step);
  }
  return path;
}

// The field named by an error about its parent object: "Missing required property 'token'."
std::optional<std::string> named_field(const std::string& sentence) {
  if (!sentence.starts_with("Missing required property") &&
      !sentence.starts_with("Object contains a property that could not be validated")) {
    return std::nullopt;
  }
  const std::size_t first =
      sentence.find('\'', sentence.starts_with("Object") ? sentence.rfind(": ") : std::size_t{0});
  const std::size_t last = sentence.rfind('\'');
  if (first == std::string::npos || last <= first) return std::nullopt;
  return sentence.substr(first + 1, last - first - 1);
}

// The validator repeats an error of a part for each enclosing value; only the innermost is useful.
bool is_echo(const std::string& sentence) {
  return sentence.starts_with("Failed to validate against schema associated with") ||
         sentence.starts_with("Failed to validate item #") ||
         sentence.starts_with("Failed to validate against child schema");
}

std::string spoken(const std::string& sentence) {
  if (sentence.starts_with("Missing required property")) return "is required";
  if (sentence.starts_with("Object contains a property")) return "is not a known field";
  if (sentence.starts_with("Value type not permitted by 'type'")) return "is of the wrong type";
  if (sentence.starts_with("Failed to match against any enum"))
    return "is none of the values allowed";
  if (sentence.starts_with("Failed to match regex")) return "does not match the pattern";
  return sentence;
}

}  // namespace

Result<> parse(const bj::object& schema, std::string_view at) {
  std::string why;
  begin_budget();
  try {  // allowed: the validator throws on an invalid schema
    valijson::Schema ignored;
    populate(schema, ignored);
    return {};
  } catch (const std::exception& error) {
    why = error.what();
  }
  const std::string place{at};
  return std::unexpected(Error{Errc::plugin_manifest_invalid,
                               place + ": is not a JSON Schema: " + why,
                               "ask the author of the plugin to mend its config schema",
                               {{place, why}}});
}

std::vector<Issue> problems_of(const bj::object& schema, const bj::object& config,
                               std::string_view at) {
  std::vector<Issue> issues;
  valijson::ValidationResults results;
  begin_budget();
  try {  // allowed: the validator throws on patterns that it cannot compile
    valijson::Schema compiled;
    populate(schema, compiled);
    const bj::value target(config);
    valijson::Validator validator;
    if (validator.validate(compiled, Adapter{target}, &results)) return issues;
  } catch (const std::exception& error) {
    issues.push_back({std::string{at}, std::string{"cannot be checked: "} + error.what()});
    return issues;
  }
  valijson::ValidationResults::Error error;
  while (results.popError(error) && issues.size() < issues_max) {
    if (is_echo(error.description)) continue;
    ConfigPath path = path_of(error.context);
    if (const auto field = named_field(error.description)) path = path / *field;
    Issue issue{std::string{at} + path.pointer(), spoken(error.description)};
    if (std::ranges::find(issues, issue) == issues.end()) issues.push_back(std::move(issue));
  }
  if (issues.empty()) issues.push_back({std::string{at}, "does not fit the schema"});
  return issues;
}

}  // namespace berth::core::schema_detail
