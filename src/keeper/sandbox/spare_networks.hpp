#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"

#include <string>
#include <vector>

// Network namespaces with only a loopback that is up, made in advance and reused: creating and
// destroying one is the most expensive part of a sandbox. For a process with one thread; only root
// can make them.
namespace berth::keeper::sandbox {

class SpareNetworks {
 public:
  // One that is new or in its original state. Empty if none can be made.
  Fd take();
  // Called when no process is in it any more. It is reused only if it is indistinguishable from a
  // new one.
  void give_back(Fd network);

 private:
  std::string pristine_;  // the traces of a new one
  std::vector<Fd> spare_;
};

// Everything that a sandbox can leave in its network namespace, as text. Processes inside have no
// rights over the namespace: they cannot change interfaces, addresses, routes or settings. They can
// only hold sockets and send, and the kernel counts both: open sockets of every family, every
// packet through the loopback, and all protocol activity and errors. Without a packet there is no
// connection in TIME_WAIT, no cached metric or route, and no tracked flow.
Result<std::string> network_traces(int network_namespace);

}  // namespace berth::keeper::sandbox
