#include "keeper/sandbox/orders.hpp"

#include "base/files.hpp"
#include "keeper/protocol/descriptors.hpp"
#include "keeper/protocol/protocol.hpp"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>

namespace berth::keeper::sandbox {
namespace {

// The maximum packet size. A longer plan is sent as a file.
constexpr std::size_t packet_bytes_max = std::size_t{8} << 10;
constexpr std::size_t plan_bytes_max = std::size_t{2} << 20;
constexpr std::string_view in_a_file = "f";
constexpr std::string_view kept_tray = "t";
constexpr std::string_view more_maps = "m";
constexpr std::string_view end_of_maps = "e";

Fd file_of(std::string_view bytes) {
  Fd file{::memfd_create("plan", MFD_CLOEXEC)};
  while (file && !bytes.empty()) {
    const ssize_t wrote = ::write(file.get(), bytes.data(), bytes.size());
    if (wrote <= 0) return {};
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
  if (file) ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

int send_packet(int control, std::string_view bytes, std::span<const int> descriptors) {
  return send_with(control, bytes, descriptors, MSG_NOSIGNAL) < 0 ? errno : 0;
}

int receive_packet(int control, std::string& packet, std::vector<Fd>& passed) {
  packet.resize(packet_bytes_max);
  ssize_t got = 0;
  do {
    got = receive_with(control, packet, passed, 0);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return errno;
  packet.resize(static_cast<std::size_t>(got));
  return got == 0 ? ECANCELED : 0;
}

int decode_plan(const std::string& bytes, Plan& plan) {
  FrameReader reader;
  reader.feed(bytes);
  const Result<std::optional<Frame>> frame = reader.next();
  if (!frame || !*frame) return EBADMSG;
  Result<Confine> confine = decode<Confine>(**frame);
  if (!confine) return EBADMSG;
  plan = std::move(confine->plan);
  return 0;
}

}  // namespace

int send_orders(int control, const Plan& plan, Enclosed enclosed) {
  std::span<const int> bind_maps = enclosed.bind_maps;
  std::string frame;
  append_frame(frame, 0, Confine{.plan = plan});
  if (frame.size() <= packet_bytes_max) {
    if (const int error_number = send_packet(control, frame, {})) return error_number;
  } else {
    const Fd file = file_of(frame);
    if (!file) return errno;
    const int passed = file.get();
    if (const int error_number = send_packet(control, in_a_file, {&passed, 1})) {
      return error_number;
    }
  }
  if (enclosed.tray >= 0) {
    if (const int error_number = send_packet(control, kept_tray, {&enclosed.tray, 1})) {
      return error_number;
    }
  }
  while (!bind_maps.empty()) {
    const std::size_t count = std::min(bind_maps.size(), descriptors_max);
    if (const int error_number = send_packet(control, more_maps, bind_maps.first(count))) {
      return error_number;
    }
    bind_maps = bind_maps.subspan(count);
  }
  return send_packet(control, end_of_maps, {});
}

int receive_orders(int control, Orders& orders) {
  std::string packet;
  std::vector<Fd> passed;
  if (const int error_number = receive_packet(control, packet, passed)) return error_number;
  if (packet == in_a_file && passed.size() == 1) {
    Result<std::string> file = read_fd(passed[0].get(), plan_bytes_max, "a plan");
    if (!file) return EIO;
    packet = *std::move(file);
  }
  if (const int error_number = decode_plan(packet, orders.plan)) return error_number;
  while (true) {
    passed.clear();
    if (const int error_number = receive_packet(control, packet, passed)) return error_number;
    if (packet == end_of_maps) return 0;
    if (packet == kept_tray && passed.size() == 1) {
      orders.tray = std::move(passed[0]);
      continue;
    }
    if (packet != more_maps) return EBADMSG;
    for (Fd& map : passed) orders.bind_maps.push_back(std::move(map));
  }
}

}  // namespace berth::keeper::sandbox
