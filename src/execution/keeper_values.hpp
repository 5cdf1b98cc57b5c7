#pragma once

#include "execution/execution.hpp"
#include "keeper/protocol/messages.hpp"

// The drivers' values in the words of the keeper, and back.
namespace berth::execution {

// A command as a keeper is asked for it. What was secret in it is wiped when it goes.
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
// A command that could not start has not ended: the error says why it could not.
Result<Ended> ended_of(const keeper::Ended& ended);
// "SIGKILL"
std::string signal_name(int number);

}  // namespace berth::execution
