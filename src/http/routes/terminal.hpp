#pragma once

#include "core/output/attach.hpp"
#include "engine/leases/lease_terminals.hpp"
#include "http/route.hpp"

namespace berth::http {

// The messages between a terminal and one kind of client. Empty if that kind has no such message.
class TerminalFrames {
 public:
  virtual ~TerminalFrames() = default;

  virtual std::optional<Message> ready() = 0;
  virtual std::optional<Message> output(const places::OutputPiece& piece) = 0;
  virtual std::optional<Message> taken(std::size_t bytes) = 0;
  virtual Message failed(const Error& error) = 0;
  virtual Message ended(const std::string& exec_id, const places::Ended& ended) = 0;
  virtual Result<core::AttachRequest> request(const Message& message) = 0;
};

// The frames of core/output/attach.hpp. Where a run's `ended` describes the run, this one describes
// the command, as `exec`.
class AttachFrames final : public TerminalFrames {
 public:
  std::optional<Message> ready() override { return std::nullopt; }
  std::optional<Message> output(const places::OutputPiece& piece) override;
  std::optional<Message> taken(std::size_t bytes) override;
  Message failed(const Error& error) override;
  Message ended(const std::string& exec_id, const places::Ended& ended) override;
  Result<core::AttachRequest> request(const Message& message) override;
};

// Text in both directions, for a page that shows a terminal and nothing else:
//   client  {type: input, data}, {type: resize, cols, rows}
//   server  {type: ready}, {type: output, data}, {type: error, error, code}, {type: closed, ...}
// `data` is the typed or shown text; a character that output splits waits for its rest.
class PageFrames final : public TerminalFrames {
 public:
  std::optional<Message> ready() override;
  std::optional<Message> output(const places::OutputPiece& piece) override;
  std::optional<Message> taken(std::size_t /*bytes*/) override { return std::nullopt; }
  Message failed(const Error& error) override;
  Message ended(const std::string& exec_id, const places::Ended& ended) override;
  Result<core::AttachRequest> request(const Message& message) override;

 private:
  std::string cut_;  // the start of a character
};

// What happens to a command whose client disconnects before its end.
enum class OnLeave { goes_on, is_cancelled };

// Serves one client of a command in a leased place, until the command has ended or the client
// disconnects.
Task<> serve_terminal(places::LiveCommandPtr command, std::uint64_t offset, TerminalFrames& frames,
                      Socket& socket, OnLeave on_leave = OnLeave::goes_on);

}  // namespace berth::http
