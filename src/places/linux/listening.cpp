#include "places/linux/listening.hpp"

#include "base/files.hpp"
#include "base/text.hpp"
#include "files/beneath.hpp"
#include "keeper/protocol/client.hpp"
#include "places/linux/egress_gateway.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace berth::places {
namespace {

constexpr std::size_t table_bytes_max = std::size_t{1} << 20;
constexpr std::string_view listens = "0A";  // the kernel's number for that state

// The first `count` fields of a line, separated by blanks.
std::vector<std::string_view> fields_of(std::string_view line, std::size_t count) {
  std::vector<std::string_view> fields;
  while (fields.size() < count) {
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin == std::string_view::npos) break;
    line.remove_prefix(begin);
    const std::size_t end = std::min(line.find(' '), line.size());
    fields.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return fields;
}

// The first process always exists and cannot leave its network.
std::string table_inside(int root, const char* path) {
  const Fd file{files::open_beneath(root, path, O_RDONLY | O_NONBLOCK, files::Links::as_inside)};
  std::string text;
  std::array<char, 16384> piece{};
  while (file && text.size() < table_bytes_max) {
    const ssize_t got = ::read(file.get(), piece.data(), piece.size());
    if (got <= 0) break;
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
  return text;
}

}  // namespace

std::vector<std::uint16_t> ports_in(std::string_view tables) {
  std::vector<std::uint16_t> ports;
  while (!tables.empty()) {
    const std::size_t end = std::min(tables.find('\n'), tables.size());
    // "sl local_address rem_address st ...": an address is hexadecimal digits, ":" and the port.
    const auto fields = fields_of(tables.substr(0, end), 4);
    tables.remove_prefix(std::min(end + 1, tables.size()));
    if (fields.size() < 4 || fields[3] != listens) continue;
    const std::string_view digits = fields[1].substr(fields[1].rfind(':') + 1);
    std::uint16_t port = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), port, 16);
    if (read.ec == std::errc{} && port != 0) ports.push_back(port);
  }
  std::ranges::sort(ports);
  ports.erase(std::ranges::unique(ports).begin(), ports.end());
  return ports;
}

Result<std::vector<std::uint16_t>> ports_inside(const std::string& keeper_folder) {
  BERTH_TRY(Fd socket, keeper::connect_keeper(keeper_folder));
  BERTH_TRY(const Fd root, keeper::KeeperClient{std::move(socket)}.root());
  std::vector<std::uint16_t> ports = ports_in(table_inside(root.get(), "proc/1/net/tcp") +
                                              table_inside(root.get(), "proc/1/net/tcp6"));
  std::erase_if(ports, is_own_door);
  return ports;
}

}  // namespace berth::places
