#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"
#include "core/ids.hpp"

#include <set>
#include <string>

namespace berth::app {

// The server's folder: mode 0700, holding the database, the master key, the logs of runs, what runs
// on this machine, and what tells a client where the server is. One server at a time.
class Home {
 public:
  // Locks the folder for as long as this lives: `conflict` when another server has it.
  static Result<Home> open(std::string path);

  std::string leases_folder() const { return path_ + "/leases"; }
  std::string sandboxes_folder() const { return path_ + "/sandboxes"; }
  std::string images_folder() const { return path_ + "/images"; }
  std::string templates_folder() const { return path_ + "/templates"; }
  std::string homes_folder() const { return path_ + "/agents"; }
  std::string logs_folder() const { return path_ + "/runs"; }
  std::string plugins_folder() const { return path_ + "/plugins"; }
  std::string plugin_work_folder() const { return path_ + "/plugin-work"; }
  std::string exchange_folder() const { return path_ + "/plugin-exchange"; }
  std::string plugin_files_folder() const { return path_ + "/plugin-files"; }
  std::string ssh_folder() const { return path_ + "/ssh"; }
  const std::string& path() const { return path_; }
  // Other users may pass through the home to the folder of plugins, to the files of plugins and to
  // those on their way, and see nothing else: neither what the home holds nor, whatever its mode
  // was, what is in any of it.
  Result<> let_others_through() const;
  // The nodes that servers with this home were; the newest ones are remembered.
  std::set<core::NodeId> former_nodes() const;
  Result<> remember_node(const core::NodeId& node) const;

  // server.json: where clients on this machine find the server. Removed at the end, if it is still
  // ours.
  Result<> announce(const std::string& url) const;
  void withdraw() const;
  // admin.token: the first administrator's key, readable by the server's user alone. Written before
  // the key is valid, so that no crash leaves a valid key that nobody knows.
  Result<> write_admin_key(const std::string& key) const;
  void remove_admin_key() const;
  std::string admin_key_file() const { return path_ + "/admin.token"; }

 private:
  Home(std::string path, Fd lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  std::string server_file() const { return path_ + "/server.json"; }
  std::string nodes_file() const { return path_ + "/nodes"; }

  std::string path_;
  Fd lock_;
};

}  // namespace berth::app
