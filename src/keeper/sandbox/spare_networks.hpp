#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"

#include <string>
#include <vector>

// Network namespaces with nothing but a loopback that is up, made in advance and used again: to
// make and to destroy one is the dearest part of a sandbox. For a process with one thread; only
// root can make them.
namespace berth::keeper::sandbox {

class SpareNetworks {
 public:
  // One that is new, or as good as new. Empty where none can be made.
  Fd take();
  // When nobody is in it any more. It is used again only if it cannot be told from a new one.
  void give_back(Fd network);

 private:
  std::string pristine_;  // the traces of a new one
  std::vector<Fd> spare_;
};

// Everything that a sandbox can leave in its network namespace, as text. Whoever is inside has no
// rights over the namespace: he cannot change interfaces, addresses, routes or settings. What he
// can do is to hold sockets and to send, and the kernel counts both: open sockets of every family,
// every packet through the loopback, and all that the protocols have done or refused to do. Without
// a packet there is no connection in TIME_WAIT, no cached metric or route, and no tracked flow.
Result<std::string> network_traces(int network_namespace);

}  // namespace berth::keeper::sandbox
