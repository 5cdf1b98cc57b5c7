#include "keeper/plugin_worker/plugin_box.hpp"

#include "base/files.hpp"
#include "base/text.hpp"
#include "keeper/protocol/descriptors.hpp"
#include "keeper/protocol/wire.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <optional>

namespace berth::keeper {
namespace {

constexpr std::array<std::string_view, static_cast<std::size_t>(BoxLevel::count_)> level_names{
    "none", "weak", "strong"};
constexpr std::size_t packet_bytes_max = std::size_t{64} << 10;
constexpr std::size_t doors_max = 64;

enum class Packet : std::uint8_t { names_udp, names_tcp, proxy, door, report, count_ };

struct SocketPacket {
  Packet kind = Packet::door;
  std::uint16_t port = 0;
  static constexpr auto fields() {
    return std::tuple{field("kind", &SocketPacket::kind), field("port", &SocketPacket::port)};
  }
};

int send_socket(int channel, const SocketPacket& packet, const Fd& socket) {
  if (!socket) return 0;
  std::string bytes;
  WireWriter{bytes}.put(packet);
  const int descriptor = socket.get();
  return send_with(channel, bytes, std::span{&descriptor, 1}, MSG_NOSIGNAL) < 0 ? errno : 0;
}

std::unexpected<Error> garbled() {
  return fail(Errc::bug, "the keeper's report about a plugin's box cannot be read");
}

Result<> keep(PluginSockets& sockets, const SocketPacket& packet, Fd socket) {
  switch (packet.kind) {
    case Packet::names_udp: sockets.names_udp = std::move(socket); return {};
    case Packet::names_tcp: sockets.names_tcp = std::move(socket); return {};
    case Packet::proxy: sockets.proxy = std::move(socket); return {};
    case Packet::door:
      if (sockets.doors.size() >= doors_max) return garbled();
      sockets.doors.push_back({.port = packet.port, .listener = std::move(socket)});
      return {};
    default: return garbled();
  }
}

std::optional<BoxLevel> level_of(std::string_view name) {
  const auto found = std::ranges::find(level_names, name);
  if (found == level_names.end()) return std::nullopt;
  return static_cast<BoxLevel>(found - level_names.begin());
}

}  // namespace

std::string_view name_of(BoxLevel level) {
  return level_names[static_cast<std::size_t>(level)];
}

std::vector<std::string> words_of(const PluginBox& box) {
  std::vector<std::string> words{"box", "--least", std::string{name_of(box.least)}};
  const auto add = [&](const char* option, std::string value) {
    words.emplace_back(option);
    words.push_back(std::move(value));
  };
  if (!box.tmp_folder.empty()) add("--tmp", box.tmp_folder);
  for (const std::string& path : box.readable) add("--read", path);
  for (const std::string& path : box.writable) add("--write", path);
  for (const std::uint16_t port : box.ports) add("--port", std::to_string(port));
  return words;
}

Result<PluginBox> parse_box(std::span<char*> words) {
  PluginBox box;
  if (words.size() % 2 != 1 || std::string_view{words[0]} != "box") {
    return fail(Errc::bad_request, "expected `box` and its options, each with a value");
  }
  for (std::size_t at = 1; at < words.size(); at += 2) {
    const std::string_view option = words[at];
    const std::string_view value = words[at + 1];
    const auto level = option == "--least" ? level_of(value) : std::nullopt;
    std::uint16_t port = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), port);
    const bool is_port = error == std::errc{} && end == value.data() + value.size() && port != 0;
    if (level) {
      box.least = *level;
    } else if (option == "--port" && is_port) {
      box.ports.push_back(port);
    } else if (option == "--read" && value.starts_with('/')) {
      box.readable.emplace_back(value);
    } else if (option == "--write" && value.starts_with('/')) {
      box.writable.emplace_back(value);
    } else if (option == "--tmp" && value.starts_with('/')) {
      box.tmp_folder = value;
    } else {
      return fail(Errc::bad_request,
                  "unknown box option " + in_quotes(option) + " " + in_quotes(value));
    }
  }
  return box;
}

int send_sockets(int channel, const PluginSockets& sockets) {
  int error_number = send_socket(channel, {.kind = Packet::names_udp}, sockets.names_udp);
  if (error_number == 0) {
    error_number = send_socket(channel, {.kind = Packet::names_tcp}, sockets.names_tcp);
  }
  if (error_number == 0) {
    error_number = send_socket(channel, {.kind = Packet::proxy}, sockets.proxy);
  }
  for (const PluginSockets::Door& door : sockets.doors) {
    if (error_number != 0) break;
    error_number = send_socket(channel, {.kind = Packet::door, .port = door.port}, door.listener);
  }
  return error_number;
}

int send_report(int channel, const BoxReport& report) {
  std::string bytes;
  WireWriter writer{bytes};
  writer.put(Packet::report);
  writer.put(report);
  return ::send(channel, bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0 ? errno : 0;
}

Result<BoxArrival> receive_from_box(int channel, BoxArrivals& into) {
  std::string bytes(packet_bytes_max, '\0');
  std::vector<Fd> descriptors;
  const ssize_t got = receive_with(channel, bytes, descriptors, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return BoxArrival::none;
  if (got < 0) return io_failure("read", "the report about a plugin's box", errno);
  if (got == 0) return fail(Errc::plugin_unavailable, "the keeper ended before it made the box");
  bytes.resize(static_cast<std::size_t>(got));
  WireReader reader{bytes};
  if (bytes.front() == static_cast<char>(Packet::report)) {
    Packet kind{};
    if (!reader.get(kind) || !reader.get(into.report) || !reader.at_end()) return garbled();
    return BoxArrival::complete;
  }
  SocketPacket packet;
  if (!reader.get(packet) || !reader.at_end() || descriptors.size() != 1) return garbled();
  BERTH_DO(keep(into.sockets, packet, std::move(descriptors.front())));
  return BoxArrival::more;
}

}  // namespace berth::keeper
