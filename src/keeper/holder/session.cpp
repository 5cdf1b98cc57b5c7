#include "keeper/holder/session.hpp"

#include "base/files.hpp"
#include "keeper/protocol/descriptors.hpp"
#include "keeper/protocol/state_folder.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace berth::keeper {
namespace {

constexpr std::size_t attachments_max = 64;
// How much one client is sent before the other clients and the commands get their turn.
constexpr std::size_t turn_bytes = std::size_t{4} << 20;
constexpr std::size_t read_bytes = std::size_t{64} << 10;

}  // namespace

void Session::add_to(PollSet& turn) {
  short events = 0;
  // A client that does not read its answers may not send more requests.
  if (out_.size() < limits::client_backlog_bytes) events |= POLLIN;
  if (!out_.empty()) events |= POLLOUT;
  if (hungry_) turn.wake_by(boot_ms());
  turn.watch(socket_.get(), events, [this](short ready) {
    if (closed_) return;
    if ((ready & POLLOUT) != 0) flush();
    if ((ready & (POLLIN | POLLHUP | POLLERR)) != 0) receive();
  });
}

void Session::receive() {
  const std::span<char> into = scratch_.first(std::min(scratch_.size(), read_bytes));
  const ssize_t got = ::recv(socket_.get(), into.data(), into.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return close();
  in_.feed({into.data(), static_cast<std::size_t>(got)});
  handle_frames();
}

void Session::handle_frames() {
  while (!closed_ && out_.size() < limits::client_backlog_bytes) {
    const Result<std::optional<Frame>> frame = in_.next();
    if (!frame) {
      std::string out;
      append_frame(out, 0, as_refused(frame.error()));
      post(out);
      return close();
    }
    if (!*frame) return;
    host_.handle(*this, **frame);
  }
}

void Session::post(std::string_view frame) {
  out_ += frame;
  flush();
}

void Session::post(std::string_view frame, Fd descriptor) {
  enclosures_.push_back({.at = out_.size(), .descriptor = std::move(descriptor)});
  post(frame);
}

void Session::flush() {
  std::size_t sent = 0;
  while (sent < out_.size()) {
    const bool encloses = !enclosures_.empty() && enclosures_.front().at == sent;
    // A descriptor is sent with the first byte of its own frame, so no send goes past the next one.
    const std::size_t next = encloses ? 1 : 0;
    const std::size_t end = next < enclosures_.size() ? enclosures_[next].at : out_.size();
    const int descriptor = encloses ? enclosures_.front().descriptor.get() : -1;
    const ssize_t wrote = send_with(socket_.get(), std::string_view{out_}.substr(sent, end - sent),
                                    std::span{&descriptor, next}, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && errno == EAGAIN) break;
    if (wrote < 0) {
      close();
      sent = out_.size();
      enclosures_.clear();
      break;
    }
    sent += static_cast<std::size_t>(wrote);
    if (encloses) enclosures_.pop_front();
  }
  out_.erase(0, sent);
  for (Enclosure& enclosure : enclosures_) enclosure.at -= sent;
}

Result<> Session::attach(std::uint64_t request, const Attach& what) {
  if (attachments_.size() >= attachments_max) {
    return fail(Errc::overloaded, "the client is attached to " + std::to_string(attachments_max) +
                                      " outputs already");
  }
  if (!host_.is_known(what.exec_id)) {
    return fail(Errc::exec_not_found, "exec " + what.exec_id + ": never ran here");
  }
  attachments_.push_back(
      {.request = request, .exec_id = what.exec_id, .file = {}, .offset = what.offset});
  return {};
}

void Session::pump() {
  handle_frames();
  std::size_t sent = 0;
  for (std::size_t i = 0; i < attachments_.size() && out_.empty() && !closed_; ++i) {
    sent += pump_one(attachments_[i]);
  }
  hungry_ = sent >= turn_bytes && out_.empty();
  // The output that was served first is last in the next turn, so that one busy output does not
  // starve the others.
  if (attachments_.size() > 1) std::ranges::rotate(attachments_, attachments_.begin() + 1);
  std::erase_if(attachments_, [](const Attachment& attachment) { return attachment.over; });
}

std::size_t Session::pump_one(Attachment& attachment) {
  std::size_t sent = 0;
  while (out_.empty() && !closed_ && sent < turn_bytes) {
    // Checked before reading: what is written in between is then read in the next turn.
    const bool live = host_.is_live(attachment.exec_id);
    if (!attachment.file) {  // its first output creates the file
      attachment.file = Fd{::open(output_file(attachment.exec_id).c_str(), O_RDONLY | O_CLOEXEC)};
    }
    const ssize_t got = ::pread(attachment.file.get(), scratch_.data(), scratch_.size(),
                                static_cast<off_t>(attachment.offset));
    if (got <= 0) {
      attachment.over = !live;
      if (!live) host_.answer_end({id_, attachment.request}, attachment.exec_id);
      break;
    }
    append_frame(out_, attachment.request,
                 Output{.offset = attachment.offset,
                        .bytes = std::string{scratch_.data(), static_cast<std::size_t>(got)}});
    attachment.offset += static_cast<std::uint64_t>(got);
    sent += static_cast<std::size_t>(got);
    flush();
  }
  return sent;
}

}  // namespace berth::keeper
