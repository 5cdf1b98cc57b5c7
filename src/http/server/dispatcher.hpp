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

// A request that its handler may have, with the share of the server that it holds meanwhile.
struct Admitted {
  core::Call call;
  std::optional<Shares::Share> share;  // none for what is always answered
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
  // Identifies the caller and checks the permission. Once per request: before a large body is
  // stored, else before the handler.
  Task<core::Caller> authenticate(const Request& request, const Route& route);
  // After the body: reads the header fields, and takes a share, which fails with overloaded.
  Result<Admitted> admit(core::Caller caller, const Request& request, const Route& route,
                         Place place);
  // The whole path for a plain handler; `known` is the caller if it is authenticated already. An
  // exception becomes Errc::bug.
  Task<Answered> answer(const PlainHandler& handler, const Request& request, const Match& match,
                        Place place, std::optional<core::Caller> known = {});

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
extern template Task<core::Caller> guarded<core::Caller>(Task<core::Caller> task,
                                                         const Request& request);

}  // namespace berth::http
