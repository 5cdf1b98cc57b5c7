#pragma once

#include "keeper/protocol/messages.hpp"
#include "keepers/command.hpp"

// Converts between our values and the keeper's messages.
namespace berth::keepers {

// A command as a request to a keeper. Its secrets are wiped on destruction.
class ExecRequest {
 public:
  explicit ExecRequest(const Command& command, const PlaceRules& rules = {});
  ExecRequest(const ExecRequest&) = delete;
  ExecRequest& operator=(const ExecRequest&) = delete;
  ~ExecRequest();

  const keeper::Exec& exec() const { return exec_; }

 private:
  keeper::Exec exec_;
};

keeper::Resize resize_of(const std::string& exec_id, const core::TerminalSize& size);
Started started_of(const keeper::Started& started);
// A command that could not start has not ended: the error explains why.
Result<Ended> ended_of(const keeper::Ended& ended);
// "SIGKILL"
std::string signal_name(int number);

}  // namespace berth::keepers
