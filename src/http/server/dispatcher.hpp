#pragma once

#include "http/gate.hpp"
#include "http/limits.hpp"
#include "http/server/call.hpp"
#include "http/server/held_bytes.hpp"
#include "http/server/message/reader.hpp"
#include "http/server/router.hpp"
#include "http/server/shares.hpp"

namespace berth::http {

// A response, and the holder for which the server keeps it until it is delivered.
struct Answered {
  Response response;
  BytesHolder holder;
};

// The path of a request from its head to its handler: target, route, caller, permission, call. It
// does not touch a socket, so that a fuzzer runs the same code as a client.
class Dispatcher {
 public:
  Dispatcher(const Router& router, Gate& gate, const Limits& limits)
      : router_(router), gate_(gate), limits_(limits), shares_(limits) {}

  // After the head: completes the request's path and query and finds its route.
  Result<Match> route(const Head& head, Request& request) const;
  std::size_t body_bytes_max(const Route& route) const {
    return route.body_bytes_max.value_or(limits_.body_bytes_max);
  }
  // After the body: identifies the caller, checks the permission, and reads the header fields.
  Task<core::Call> admit(const Request& request, const Route& route);
  // What the caller of a stream or a relay holds while it is open. Fails with overloaded.
  Result<Shares::Share> share_of(ShareKind kind, const core::Caller& caller,
                                 const Request& request) {
    return shares_.take(kind, caller, request.remote_address);
  }
  // The whole path for a plain handler. An exception becomes Errc::bug.
  Task<Answered> answer(const PlainHandler& handler, const Request& request, const Match& match,
                        Place place);

 private:
  const Router& router_;
  Gate& gate_;
  const Limits& limits_;
  Shares shares_;
};

// Why a connection in the reserve is not served further.
Error only_for_administrators();

// Runs a handler; an exception becomes Errc::bug, and a cancelled wait becomes Errc::cancelled.
template <class T>
Task<T> guarded(Task<T> task, const Request& request);

extern template Task<> guarded<void>(Task<> task, const Request& request);
extern template Task<unsigned> guarded<unsigned>(Task<unsigned> task, const Request& request);
extern template Task<Answered> guarded<Answered>(Task<Answered> task, const Request& request);
extern template Task<core::Call> guarded<core::Call>(Task<core::Call> task, const Request& request);

}  // namespace berth::http
