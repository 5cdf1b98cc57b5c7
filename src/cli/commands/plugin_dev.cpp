#include "base/files.hpp"
#include "cli/commands/common.hpp"
#include "cli/plugin_skeleton.hpp"
#include "plugin_kit/kit.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdlib>
#include <ostream>

// Tools for plugin authors: a skeleton to start with, and a conformance check. Neither needs a
// server.
namespace berth::cli {
namespace {

using plugin_kit::CheckResult;
using plugin_kit::Report;
using plugin_kit::Verdict;

struct NewOptions {
  std::string name;
  std::string language = "cpp";
  std::optional<std::string> folder;
  std::optional<std::string> sdk;
};

struct KitOptions {
  std::string folder;
  std::optional<std::string> config;
  std::vector<std::string> variables;
  std::optional<std::string> driver;
  std::optional<std::string> only;
};

Result<std::string> absolute(const std::string& path) {
  std::array<char, PATH_MAX> out{};
  if (::realpath(path.c_str(), out.data()) == nullptr) return io_failure("find", path, errno);
  return std::string{out.data()};
}

Result<std::string> own_program() {
  return absolute("/proc/self/exe");
}

// Beside the build of this program, or installed with it.
Result<std::string> find_sdk(const std::optional<std::string>& named, const std::string& program) {
  const std::string here = parent_of(program);
  const std::vector<std::string> places =
      named ? std::vector{*named}
            : std::vector{here + "/../../sdk/cpp", here + "/../share/berth/sdk/cpp"};
  for (const std::string& place : places) {
    if (::access((place + "/plugin.cmake").c_str(), R_OK) == 0) return absolute(place);
  }
  return fail(Errc::file_not_found, "the C++ SDK is not at " + places.front(),
              "name its folder: --sdk PATH of sdk/cpp in Berth's source tree");
}

Result<> make(Context& context, const NewOptions& options) {
  const PluginLanguage language = parse_name<PluginLanguage>(options.language).value();
  BERTH_TRY(const std::string program, own_program());
  SkeletonOptions request{.name = options.name, .language = language, .sdk = {}, .berth = program};
  if (language == PluginLanguage::cpp) {
    BERTH_TRY(request.sdk, find_sdk(options.sdk, program));
  }
  BERTH_TRY(const std::vector<SkeletonFile> files, plugin_skeleton(request));
  const std::string folder = options.folder.value_or(options.name);
  // An existing folder may hold a user's work.
  if (::mkdir(folder.c_str(), 0755) != 0) return io_failure("mkdir", folder, errno);
  bj::array names;
  for (const SkeletonFile& file : files) {
    BERTH_DO(create_file(folder + "/" + file.path, file.text, 0644));
    names.emplace_back(file.path);
  }
  if (context.printer().look() == Look::json) {
    context.printer().object(bj::object{{"folder", folder}, {"files", names}});
  }
  context.printer().note("made " + folder + "; " + folder + "/README.md says how to go on");
  return {};
}

Result<bj::object> kit_config(const std::optional<std::string>& given) {
  if (!given) return bj::object{};
  // A plain path is a file too: JSON never begins like a path.
  const bool is_typed = given->starts_with('{') || given->starts_with('@');
  return read_object(is_typed ? *given : "@" + *given, "--config");
}

Result<std::map<std::string, std::string>> variables_of(const std::vector<std::string>& pairs) {
  std::map<std::string, std::string> variables;
  for (const std::string& pair : pairs) {
    const std::size_t at = pair.find('=');
    if (at == 0 || at == std::string::npos) {
      return fail(Errc::bad_request, "--env " + in_quotes(pair) + " is not NAME=VALUE");
    }
    variables[pair.substr(0, at)] = pair.substr(at + 1);
  }
  return variables;
}

Paint check_paint(Verdict verdict) {
  return verdict == Verdict::passed   ? Paint::green
         : verdict == Verdict::failed ? Paint::red
                                      : Paint::dim;
}

void print_for_people(Context& context, const Report& report) {
  std::vector<std::vector<Cell>> rows;
  for (const CheckResult& check : report.checks) {
    const bool is_open = check.verdict != Verdict::passed;
    rows.push_back({{check.check},
                    {std::string{name_of(check.verdict)}, check_paint(check.verdict)},
                    {std::string{name_of(check.weight)}, Paint::dim},
                    {printable(is_open ? check.finding : check.promise)}});
  }
  std::ostream& out = context.console().out;
  const bool colour = context.printer().colour();
  out << render_table({"CHECK", "VERDICT", "WEIGHT", "WHAT"}, rows,
                      {.columns = static_cast<std::size_t>(context.console().columns),
                       .colour = colour,
                       .whole = 1});
  for (const CheckResult& check : report.checks) {
    if (check.verdict != Verdict::failed) continue;
    out << "\n"
        << (colour ? painted(check.check, Paint::red) : check.check)
        << "\n  promised: " << check.promise << "\n  seen:     " << printable(check.finding)
        << "\n  to mend:  " << printable(check.mend) << "\n";
  }
  const std::string verdict = report.conforms ? "conforms" : "does not conform";
  out << "\n"
      << report.plugin << " " << report.version << " "
      << (colour ? painted(verdict, report.conforms ? Paint::green : Paint::red) : verdict)
      << ": score " << report.score << " of 100, " << report.passed << " passed, " << report.failed
      << " failed, " << report.skipped << " skipped\n";
}

Result<> run_kit(Context& context, const KitOptions& options) {
  plugin_kit::Request request;
  BERTH_TRY(request.folder, absolute(options.folder));
  BERTH_TRY(request.config, kit_config(options.config));
  BERTH_TRY(request.credentials, variables_of(options.variables));
  request.driver_key = options.driver;
  request.only = options.only;
  const auto path = context.console().variables.find("PATH");
  request.path = path != context.console().variables.end() ? path->second : "/usr/bin:/bin";
  const bool shows_progress = context.console().err_is_terminal && !context.flags().quiet;
  const auto watch = [&](const CheckResult& check) {
    if (shows_progress) context.console().err << "\r\033[K" << check.check << std::flush;
  };
  auto report = plugin_kit::examine(request, watch);
  if (shows_progress) context.console().err << "\r\033[K" << std::flush;
  if (!report) return std::unexpected(std::move(report).error());
  if (context.printer().look() == Look::json) {
    context.printer().object(encode(*report));
  } else {
    print_for_people(context, *report);
  }
  context.end_with(report->conforms ? 0 : 1);
  return {};
}

}  // namespace

void add_plugin_dev_commands(CommandTree& tree, CLI::App& group) {
  const auto made = std::make_shared<NewOptions>();
  CLI::App& makes = tree.leaf(
      group, "new", "write the skeleton of a provider that works", "berth plugin new acme-sandbox",
      [made](Context& context) { return make(context, *made); }, Needs::nothing);
  makes.add_option("name", made->name, "of the plugin and of its provider")->required();
  add_choice<PluginLanguage>(makes, "--language", made->language, "what it is written in");
  makes.add_option("--folder", made->folder, "where; a folder of its name by default")
      ->type_name("PATH");
  makes.add_option("--sdk", made->sdk, "the C++ SDK, where it is not beside this program")
      ->type_name("PATH");

  const auto tested = std::make_shared<KitOptions>();
  CLI::App& tests = tree.leaf(
      group, "test", "examine a provider: contract, hooks, crashes, leaks; 0 when it conforms",
      "berth plugin test ./build/plugin --config '{\"image\":\"debian\"}'",
      [tested](Context& context) { return run_kit(context, *tested); }, Needs::nothing);
  tests.add_option("path", tested->folder, "the plugin's folder, with its manifest")->required();
  tests.add_option("--config", tested->config, "the provider's config: JSON, or a file of it")
      ->type_name("JSON|FILE");
  tests
      .add_option("--var,--env", tested->variables, "a credential for the worker; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  tests.add_option("--driver", tested->driver, "which provider, where there are several")
      ->type_name("KEY");
  tests.add_option("--only", tested->only, "checks whose name has this in it")->type_name("TEXT");
}

}  // namespace berth::cli
