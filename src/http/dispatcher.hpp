#pragma once

#include "http/call.hpp"
#include "http/gate.hpp"
#include "http/limits.hpp"
#include "http/reader.hpp"
#include "http/router.hpp"

#include <map>
#include <string>

namespace berth::http {

// The way of a request from its head to its handler: target, route, caller, permission, call. It
// touches no socket, so that a fuzzer drives the same code as a client.
class Dispatcher {
 public:
  Dispatcher(const Router& router, Gate& gate, const Limits& limits)
      : router_(router), gate_(gate), limits_(limits) {}

  // After the head: completes path and query of the request and finds its route.
  Result<Match> route(const Head& head, Request& request) const;
  std::size_t body_bytes_max(const Route& route) const {
    return route.body_bytes_max.value_or(limits_.body_bytes_max);
  }
  // After the body: who calls, whether they may, and what their header fields ask for.
  Task<core::Call> admit(const Request& request, const Route& route);
  // The whole way for a plain handler. Whatever it throws becomes Errc::bug.
  Task<Response> answer(const PlainHandler& handler, const Request& request, const Match& match);

 private:
  class Share;
  // A part of what may be at work at a time, until it goes.
  Result<Share> share_of(const core::Caller& caller);

  const Router& router_;
  Gate& gate_;
  const Limits& limits_;
  std::map<std::string, std::size_t> at_work_;  // requests of each key and of each company
};

// Runs a handler; what it throws becomes Errc::bug, and a cancelled wait becomes Errc::cancelled.
template <class T>
Task<T> guarded(Task<T> task, const Request& request);

extern template Task<> guarded<void>(Task<> task, const Request& request);
extern template Task<unsigned> guarded<unsigned>(Task<unsigned> task, const Request& request);
extern template Task<Response> guarded<Response>(Task<Response> task, const Request& request);

extern template Task<core::Call> guarded<core::Call>(Task<core::Call> task, const Request& request);

}  // namespace berth::http
