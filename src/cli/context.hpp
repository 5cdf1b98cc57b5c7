#pragma once

#include "cli/config.hpp"
#include "cli/net/client.hpp"
#include "cli/objects.hpp"
#include "cli/print/console.hpp"
#include "cli/print/printer.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace berth::cli {

// The flags that every command takes.
struct GlobalFlags {
  std::string url;
  std::string token;
  std::string company;
  std::string profile;
  std::string config_file;
  std::map<std::string, std::string> settings;  // --home of any command, and all flags of serve
  std::optional<Error> config_error;            // for commands that work without configuration
  std::string output;                           // a name of Look; empty: not said
  bool json = false;                            // asked for by a flag, not by BERTH_OUTPUT
  bool watch = false;
  double interval = 2;  // seconds, of --watch
  bool no_color = false;
  bool quiet = false;
  bool yes = false;
  std::int64_t limit = 100;
  std::optional<std::vector<std::string>> command;  // what `run`, `exec`, `sandbox run` execute
};

// What a command works with: the server it talks to, the company it means and the way it prints.
class Context {
 public:
  Context(Console& console, GlobalFlags flags, Config config, Printer printer);

  // Finds the server once: --url, BERTH_URL, a profile, server.json in the home folder, the
  // default. A home that was named goes before the profile of the last login.
  Result<const Client*> client();
  // The company that was named, or the only one there is.
  Result<std::string> company_id();
  // "/api/companies/ID" with more behind it.
  Result<std::string> company_path(std::string_view rest);

  Result<bj::value> get(const std::string& path);
  Result<bj::value> send(const Request& request);
  Result<bj::array> list(const std::string& path);
  // An object that a person named: the whole object, as its list shows it or as its id finds it.
  Result<bj::value> find(const Kind& kind, const std::string& named);
  // The same as the server tells of it alone: more than in a list.
  Result<bj::value> find_page(const Kind& kind, const std::string& named);
  Result<std::string> find_id(const Kind& kind, const std::string& named);

  // Where no home was named, that of the running server takes the place of the default, if it is a
  // folder of this machine: images belong into the store of the server that uses them.
  void adopt_server_home();

  // Puts the names of environments and agents beside their ids, for tables: `environmentName` and
  // `agentName`. Where the server does not list them, the ids stand there.
  void add_names(bj::array& rows);

  Printer& printer() { return printer_; }
  Console& console() { return console_; }
  const GlobalFlags& flags() const { return flags_; }
  Config& config() { return config_; }

  // What is to be undone when the command has ended, however it ended.
  using AtEnd = std::function<Result<>(Context&)>;
  void at_end(AtEnd undo) { at_end_.push_back(std::move(undo)); }
  // Does it, the latest first. The first failure is the answer.
  Result<> finish();

  // What the process tells the shell, in place of what follows from success or the error.
  void end_with(int exit_code) { exit_code_ = exit_code; }
  std::optional<int> exit_code() const { return exit_code_; }

 private:
  Console& console_;
  GlobalFlags flags_;
  Config config_;
  Printer printer_;
  std::unique_ptr<Client> client_;
  std::optional<std::string> company_id_;
  std::optional<int> exit_code_;
  std::vector<AtEnd> at_end_;
};

struct Discovered {
  std::string url;
  std::string source;
};
// Where the server is, by the rules above, without asking it.
Result<Discovered> discover_server(const GlobalFlags& flags, const Variables& variables,
                                   const std::string& home);
// The token to use, if any: --token, BERTH_TOKEN, admin.token in the home folder.
Result<std::optional<Secret>> discover_token(const GlobalFlags& flags, const Variables& variables,
                                             const std::string& home);

}  // namespace berth::cli
