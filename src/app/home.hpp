#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"
#include "core/ids.hpp"

#include <set>
#include <string>

namespace berth::app {

// The server's folder: mode 0700, holding the database, the master key, run logs, the state of what
// runs on this machine, and the server's address for clients. One server at a time.
class Home {
 public:
  // Locks the folder while this lives; fails with `conflict` when another server has it.
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
  // Lets other users pass through the home folder to the plugin folder, the plugins' files and
  // files in transit. They see nothing else: neither the list of its entries nor their contents,
  // whatever mode the folder had.
  Result<> let_others_through() const;
  // The node ids of servers with this home folder; only the newest are remembered.
  std::set<core::NodeId> former_nodes() const;
  Result<> remember_node(const core::NodeId& node) const;

  // server.json: where clients on this machine find the server. Removed at shutdown if it is still
  // ours.
  Result<> announce(const std::string& url) const;
  void withdraw() const;
  // admin.token: the first administrator's key, readable only by the server's user. Written before
  // the key is valid, so that no crash leaves a valid key that was never stored.
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
