#pragma once

#include "core/config/linux_config.hpp"
#include "places/commands.hpp"
#include "places/files.hpp"
#include "places/live_command.hpp"
#include "places/remote_files.hpp"
#include "places/snapshots.hpp"

#include <cstdint>
#include <vector>

// What a place may be able to do beyond being acquired and given back.
namespace berth::places {

class Ports {
 public:
  virtual ~Ports() = default;
  // A TCP connection to a port of the place's own loopback; port_unreachable if no process listens
  // there. execution_unsupported if others share that loopback: a lease must not give access to the
  // machine's services.
  virtual Task<Fd> dial(const PlaceRef& lease, std::uint16_t port) = 0;
  // The ports of that loopback that have a listener, found without running a command there.
  // execution_unsupported if only a command could find them.
  virtual Task<std::vector<std::uint16_t>> listening(const PlaceRef& lease) = 0;
};

// The egress decisions for a place, from an offset in its log on.
struct EgressPage {
  std::vector<bj::object> entries = {};
  std::int64_t next_offset = 0;
};
BOOST_DESCRIBE_STRUCT(EgressPage, (), (entries, next_offset))

class EgressRules {
 public:
  virtual ~EgressRules() = default;
  // What the place may reach from now on. execution_unsupported if its egress has no gateway.
  virtual Task<> set_egress(const PlaceRef& lease, core::LinuxEgress policy) = 0;
  virtual Task<EgressPage> egress_log(const PlaceRef& lease, std::uint64_t offset) = 0;
};

class Freezer {
 public:
  virtual ~Freezer() = default;
  // Stops all processes until thaw().
  virtual Task<> freeze(const PlaceRef& lease) = 0;
  virtual Task<> thaw(const PlaceRef& lease) = 0;
};

class UsageMeter {
 public:
  virtual ~UsageMeter() = default;
  virtual Task<Usage> usage(const PlaceRef& lease) = 0;
};

// Where a place stays. own_server: it consists of processes and files of the server that made it,
// which no other server can reach.
enum class Locality { own_server, anywhere };

// A null pointer is an ability that the place lacks. The engine checks that in one function
// (engine/leases/abilities.hpp).
struct Abilities {
  Commands* commands = nullptr;
  Files* files = nullptr;
  RemoteFiles* remote_files = nullptr;
  Ports* ports = nullptr;
  EgressRules* egress = nullptr;
  Snapshots* snapshots = nullptr;
  Freezer* freezer = nullptr;
  Logins* logins = nullptr;
  UsageMeter* usage = nullptr;
  // Whether the key finds a place again. If it does not, a place whose acquire was not answered has
  // no name that this server knows.
  bool found_by_key = true;
  Locality locality = Locality::anywhere;
};

}  // namespace berth::places
