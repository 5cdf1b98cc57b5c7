#pragma once

#include "base/clock.hpp"
#include "egress/decision_log.hpp"
#include "egress/dns_message.hpp"
#include "egress/synthetic_names.hpp"

#include <functional>

namespace berth::egress {

// Answers a worker's DNS queries without any look-up: a name that the policy may allow gets a
// synthetic address, and every other name does not exist. So no query carries bytes to the outside.
// Whether the name exists and may be reached is decided when the worker connects.
class NameAnswers {
 public:
  struct Links {
    std::function<Decision(const std::string& name)> decide;
    std::function<void(LogEntry)> note;  // receives denied names
  };
  // `names` and `clock` must outlive it.
  NameAnswers(SyntheticNames& names, const Clock& clock, Links links)
      : names_(names), clock_(clock), links_(std::move(links)) {}

  // The response to the client; empty if the datagram gets none.
  std::optional<std::string> answer(std::string_view datagram);

 private:
  std::string answer_name(const DnsQuery& query, const std::string& name);
  std::string deny(const DnsQuery& query, const Decision& decision);

  SyntheticNames& names_;
  const Clock& clock_;
  Links links_;
};

}  // namespace berth::egress
