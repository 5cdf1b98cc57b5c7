#include "http/server/dispatcher.hpp"

#include "http/server/message/target.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

#include <utility>

namespace berth::http {
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
template Task<core::Call> guarded<core::Call>(Task<core::Call> task, const Request& request);

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

Task<core::Call> Dispatcher::admit(const Request& request, const Route& route) {
  Result<core::Caller> caller = co_await gate_.identify(request);
  // An open route is also open to a local user that is not the operator.
  const bool is_open_to_it = !caller && route.needs == core::Permission::open &&
                             caller.error().code == Errc::local_user_not_trusted;
  if (is_open_to_it) caller = core::Caller{};
  if (!caller) co_return std::unexpected(std::move(caller).error());
  BERTH_CO_DO(core::authorize(*caller, route.needs));
  co_return make_call(*std::move(caller), request);
}

Task<Answered> Dispatcher::answer(const PlainHandler& handler, const Request& request,
                                  const Match& match, Place place) {
  BERTH_CO_TRY(core::Call call, co_await admit(request, *match.route));
  BytesHolder holder = BytesHolder::of(call.who);
  if (match.route->is_always_answered) {
    BERTH_CO_TRY(Response response, co_await handler(std::move(call), request, match.values));
    co_return Answered{std::move(response), std::move(holder)};
  }
  if (place == Place::reserve && !call.who.is_instance_admin()) {
    co_return std::unexpected(only_for_administrators());
  }
  BERTH_CO_TRY(const Shares::Share share, share_of(ShareKind::request, call.who, request));
  BERTH_CO_TRY(Response response, co_await handler(std::move(call), request, match.values));
  co_return Answered{std::move(response), std::move(holder)};
}

}  // namespace berth::http
