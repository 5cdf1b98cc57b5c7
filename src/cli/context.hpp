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

// The flags that every command accepts.
struct GlobalFlags {
  std::string url;
  std::string token;
  std::string company;
  std::string profile;
  std::string config_file;
  std::map<std::string, std::string> settings;  // --home of any command, and all flags of serve
  std::optional<Error> config_error;            // for commands that work without configuration
  std::string output;                           // a Look name; empty: not given
  bool json = false;                            // requested by a flag, not by BERTH_OUTPUT
  bool watch = false;
  double interval = 2;  // seconds, of --watch
  bool no_color = false;
  bool quiet = false;
  bool yes = false;
  std::int64_t limit = 100;
  std::optional<std::vector<std::string>> command;  // what `run`, `exec`, `sandbox run` execute
};

// What a command works with: its server, its company and its printer.
class Context {
 public:
  Context(Console& console, GlobalFlags flags, Config config, Printer printer);

  // Finds the server once: --url, BERTH_URL, a profile, server.json in the home folder, the
  // default. A named home folder wins over the profile of the last login.
  Result<const Client*> client();
  // The named company, or the only one.
  Result<std::string> company_id();
  // "/api/companies/ID" followed by `rest`.
  Result<std::string> company_path(std::string_view rest);

  Result<bj::value> get(const std::string& path);
  Result<bj::value> send(const Request& request);
  Result<bj::array> list(const std::string& path);
  // The object that the user named: the whole object, from its list or by its id.
  Result<bj::value> find(const Kind& kind, const std::string& named);
  // The same from the object's own endpoint, which has more fields than the list.
  Result<bj::value> find_page(const Kind& kind, const std::string& named);
  Result<std::string> find_id(const Kind& kind, const std::string& named);

  // If no home folder was named, the running server's replaces the default if it is on this
  // machine: images belong in the store of the server that uses them.
  void adopt_server_home();

  // Adds the names of environments and agents to their ids, for tables: `environmentName` and
  // `agentName`. If the server does not list them, the ids are used.
  void add_names(bj::array& rows);

  Printer& printer() { return printer_; }
  Console& console() { return console_; }
  const GlobalFlags& flags() const { return flags_; }
  Config& config() { return config_; }

  // Cleanup that runs when the command has ended, however it ended.
  using AtEnd = std::function<Result<>(Context&)>;
  void at_end(AtEnd undo) { at_end_.push_back(std::move(undo)); }
  // Runs the cleanups, the latest first. Returns the first failure.
  Result<> finish();

  // Sets the exit code, in place of the one for success or the error.
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
// The server's address, by the rules above, without a request to it.
Result<Discovered> discover_server(const GlobalFlags& flags, const Variables& variables,
                                   const std::string& home);
// The token to use, if any: --token, BERTH_TOKEN, admin.token in the home folder.
Result<std::optional<Secret>> discover_token(const GlobalFlags& flags, const Variables& variables,
                                             const std::string& home);

}  // namespace berth::cli
