#pragma once

#include "base/random.hpp"
#include "base/result.hpp"

#include <string>

namespace berth::app {

// The server's folder: mode 0700, holding the database, the master key and what tells a client
// where the server is.
class Home {
 public:
  static Result<Home> open(std::string path);

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
  explicit Home(std::string path) : path_(std::move(path)) {}
  std::string server_file() const { return path_ + "/server.json"; }

  std::string path_;
};

}  // namespace berth::app
