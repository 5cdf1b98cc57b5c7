#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"

#include <sys/resource.h>

#include <mutex>
#include <span>
#include <string>
#include <vector>

// A prefork is a process that has keepers of sandboxes ready: each a fork of it, which needs no
// start of a program, with all of its sandbox that can be made before the plan is known. So whoever
// asks for a sandbox waits for what is his alone. One for each server, which it ends with; the
// keepers live on.
namespace berth::keeper {

// The server's side. May be used by several threads.
class KeeperPrefork {
 public:
  struct Options {
    std::string program;                        // path of berth-keeper
    std::vector<std::string> environment = {};  // of the keepers; commands get none of it
  };
  // The process starts with the first request.
  explicit KeeperPrefork(Options options) : options_(std::move(options)) {}

  // The first connection to a new keeper of the folder, which is made with mode 0700 unless it is
  // there. As with a keeper that is started alone, a connection that breaks at once means that the
  // folder could not be held, and its log says why.
  Result<Fd> start_keeper(const std::string& folder);

 private:
  Result<> start();

  Options options_;
  std::mutex mutex_;
  Fd control_;
};

// The process's side: serves the socket until its other end is closed.
[[noreturn]] void run_prefork(Fd control, std::span<char> command_line);

}  // namespace berth::keeper
