#pragma once

#include "http/gate.hpp"
#include "http/limits.hpp"
#include "http/server/call.hpp"
#include "http/server/held_bytes.hpp"
#include "http/server/message/reader.hpp"
#include "http/server/router.hpp"
#include "http/server/shares.hpp"

namespace berth::http {

// An answer, and who makes the server keep it until it is delivered.
struct Answered {
  Response response;
  BytesHolder holder;
};

// The way of a request from its head to its handler: target, route, caller, permission, call. It
// touches no socket, so that a fuzzer drives the same code as a client.
class Dispatcher {
 public:
  Dispatcher(const Router& router, Gate& gate, const Limits& limits)
      : router_(router), gate_(gate), limits_(limits), shares_(limits) {}

  // After the head: completes path and query of the request and finds its route.
  Result<Match> route(const Head& head, Request& request) const;
  std::size_t body_bytes_max(const Route& route) const {
    return route.body_bytes_max.value_or(limits_.body_bytes_max);
  }
  // After the body: who calls, whether they may, and what their header fields ask for.
  Task<core::Call> admit(const Request& request, const Route& route);
  // What the caller of a stream or a relay holds while it is open. Fails overloaded.
  Result<Shares::Share> share_of(ShareKind kind, const core::Caller& caller,
                                 const Request& request) {
    return shares_.take(kind, caller, request.remote_address);
  }
  // The whole way for a plain handler. Whatever it throws becomes Errc::bug.
  Task<Answered> answer(const PlainHandler& handler, const Request& request, const Match& match,
                        Place place);

 private:
  const Router& router_;
  Gate& gate_;
  const Limits& limits_;
  Shares shares_;
};

// Why a connection of the reserve is served no further.
Error only_for_administrators();

// Runs a handler; what it throws becomes Errc::bug, and a cancelled wait becomes Errc::cancelled.
template <class T>
Task<T> guarded(Task<T> task, const Request& request);

extern template Task<> guarded<void>(Task<> task, const Request& request);
extern template Task<unsigned> guarded<unsigned>(Task<unsigned> task, const Request& request);
extern template Task<Answered> guarded<Answered>(Task<Answered> task, const Request& request);
extern template Task<core::Call> guarded<core::Call>(Task<core::Call> task, const Request& request);

}  // namespace berth::http
