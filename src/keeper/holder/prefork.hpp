#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"

#include <sys/resource.h>

#include <mutex>
#include <span>
#include <string>
#include <vector>

// A prefork is a process that keeps forked sandbox keepers ready. A fork does not have to load a
// program, and has already made every part of its sandbox that does not depend on the plan. A
// request then waits only for the rest. Each server has one prefork, which ends with it; the
// keepers live on.
namespace berth::keeper {

// The server's side. May be used by several threads.
class KeeperPrefork {
 public:
  struct Options {
    std::string program;                        // path of berth-keeper
    std::vector<std::string> environment = {};  // the keepers' own; commands get none of it
  };
  // The process starts with the first request.
  explicit KeeperPrefork(Options options) : options_(std::move(options)) {}

  // Returns the first connection to a new keeper for the folder, which is created with mode 0700 if
  // it is missing. As with a keeper that is started alone, a connection that breaks at once means
  // that the folder could not be held; its log has the reason.
  Result<Fd> start_keeper(const std::string& folder);

 private:
  Result<> start();

  Options options_;
  std::mutex mutex_;
  Fd control_;
};

// The prefork's side: serves the socket until its other end is closed.
[[noreturn]] void run_prefork(Fd control, std::span<char> command_line);

}  // namespace berth::keeper
