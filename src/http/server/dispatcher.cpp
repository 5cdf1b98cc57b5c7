#include "http/server/dispatcher.hpp"

#include "http/server/message/target.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

#include <utility>

namespace berth::http {
namespace {

ShareKind share_kind(const Handler& handler) {
  if (std::holds_alternative<PlainHandler>(handler)) return ShareKind::request;
  return std::holds_alternative<RelayHandler>(handler) ? ShareKind::relay : ShareKind::stream;
}

}  // namespace

template <class T>
Task<T> guarded(Task<T> task, const Request& request) {
  try {
    co_return co_await std::move(task);
  } catch (const boost::system::system_error& error) {
    if (error.code() == asio::error::operation_aborted) {
      co_return fail(Errc::cancelled, "request " + request.request_id + " was cancelled");
    }
    co_return fail(Errc::bug, error.what());
  } catch (const std::exception& error) {
    co_return fail(Errc::bug, error.what());
  } catch (...) {
    co_return fail(Errc::bug, "the handler threw something that is not an exception");
  }
}

template Task<> guarded<void>(Task<> task, const Request& request);
template Task<unsigned> guarded<unsigned>(Task<unsigned> task, const Request& request);
template Task<Answered> guarded<Answered>(Task<Answered> task, const Request& request);
template Task<core::Caller> guarded<core::Caller>(Task<core::Caller> task, const Request& request);

Result<Match> Dispatcher::route(const Head& head, Request& request) const {
  const std::string_view host = request.headers.find("host").value_or("");
  BERTH_TRY(Target target, parse_path(head.target, host));
  request.path = std::move(target.path);
  const bool known = head.method != Head::Method::other;
  BERTH_TRY(Match match,
            router_.find(known ? std::optional{request.verb} : std::nullopt, target.segments));
  // The server that a request is relayed to has its own rules for queries.
  if (std::holds_alternative<RelayHandler>(match.route->handler)) return match;
  BERTH_TRY(request.query, parse_query(target.query_text));
  return match;
}

Error only_for_administrators() {
  return Error{Errc::overloaded,
               "every connection of the server is in use; what is left is for instance "
               "administrators and health",
               "connect again a little later, or raise connections_max"};
}

Task<core::Caller> Dispatcher::authenticate(const Request& request, const Route& route) {
  Result<core::Caller> caller = co_await gate_.identify(request);
  // An open route is also open to a local user that is not the operator.
  const bool is_open_to_it = !caller && route.needs == core::Permission::open &&
                             caller.error().code == Errc::local_user_not_trusted;
  if (is_open_to_it) caller = core::Caller{};
  if (!caller) co_return std::unexpected(std::move(caller).error());
  BERTH_CO_DO(core::authorize(*caller, route.needs));
  co_return caller;
}

Result<Admitted> Dispatcher::admit(core::Caller caller, const Request& request, const Route& route,
                                   Place place) {
  BERTH_TRY(core::Call call, make_call(std::move(caller), request));
  if (route.is_always_answered) return Admitted{std::move(call), std::nullopt};
  const ShareKind kind = share_kind(route.handler);
  // Long-lived streams may not use the reserve.
  const bool may_use_reserve = kind == ShareKind::request && call.who.is_instance_admin();
  if (place == Place::reserve && !may_use_reserve) {
    return std::unexpected(only_for_administrators());
  }
  BERTH_TRY(Shares::Share share, shares_.take(kind, call.who, request.remote_address));
  return Admitted{std::move(call), std::move(share)};
}

Task<Answered> Dispatcher::answer(const PlainHandler& handler, const Request& request,
                                  const Match& match, Place place,
                                  std::optional<core::Caller> known) {
  if (!known) {
    BERTH_CO_TRY(known, co_await authenticate(request, *match.route));
  }
  BytesHolder holder = BytesHolder::of(*known);
  BERTH_CO_TRY(Admitted admitted, admit(*std::move(known), request, *match.route, place));
  BERTH_CO_TRY(Response response,
               co_await handler(std::move(admitted.call), request, match.values));
  co_return Answered{std::move(response), std::move(holder)};
}

}  // namespace berth::http
