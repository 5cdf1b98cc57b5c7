#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"
#include "keeper/protocol/fields.hpp"
#include "keeper/protocol/messages.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

// What a plugin's worker may see and reach, and what the keeper reports about it to the server.
// docs/plugins.md#the-box describes it for operators.
namespace berth::keeper {

// How much of the box is in force, weakest first, so that levels can be compared.
enum class BoxLevel : std::uint8_t {
  none,    // an unprivileged user only
  weak,    // Landlock and the system-call filter, no namespaces
  strong,  // own namespaces, and both filters inside them
  count_,
};
std::string_view name_of(BoxLevel level);

struct PluginBox {
  std::vector<std::string> readable = {};  // absolute paths, visible at the same path
  std::vector<std::string> writable = {};
  std::string tmp_folder = {};            // visible as /tmp
  std::vector<std::uint16_t> ports = {};  // to which outside connections are accepted
  BoxLevel least = BoxLevel::weak;        // no worker is started in a weaker box
};

// The HTTP proxy's port on the box's loopback.
inline constexpr std::uint16_t box_proxy_port = 3128;

// Sockets that listen in the box and that the server serves.
struct PluginSockets {
  struct Door {
    std::uint16_t port = 0;
    Fd listener;
  };
  Fd names_udp;             // DNS, 127.0.0.1:53
  Fd names_tcp;             // also DNS
  Fd proxy;                 // HTTP proxy, 127.0.0.1:box_proxy_port
  std::vector<Door> doors;  // each listens on every address, at one port
};

struct BoxReport {
  BoxLevel level = BoxLevel::none;
  std::vector<std::string> features = {};
  std::vector<Missing> missing = {};
  std::string failure = {};  // why no worker was started; empty if one was
  static constexpr auto fields() {
    return std::tuple{field("level", &BoxReport::level), field("features", &BoxReport::features),
                      field("missing", &BoxReport::missing), field("failure", &BoxReport::failure)};
  }
};

// The descriptor on which the keeper reports: the server's SOCK_SEQPACKET socket.
inline constexpr int box_report_descriptor = 3;

// A box as arguments on the keeper's command line, and back.
std::vector<std::string> words_of(const PluginBox& box);
Result<PluginBox> parse_box(std::span<char*> words);

// The keeper's side. Each returns 0 or errno.
int send_sockets(int channel, const PluginSockets& sockets);
int send_report(int channel, const BoxReport& report);

// The server's side: receives one packet without waiting. Returns `more` until the report has come.
struct BoxArrivals {
  PluginSockets sockets = {};
  BoxReport report = {};
};
enum class BoxArrival : std::uint8_t { none, more, complete };
Result<BoxArrival> receive_from_box(int channel, BoxArrivals& into);

}  // namespace berth::keeper
