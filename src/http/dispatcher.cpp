#include "http/dispatcher.hpp"

#include "http/target.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

#include <utility>
#include <vector>

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
    co_return fail(Errc::bug, "the handler threw something that is no exception");
  }
}

template Task<> guarded<void>(Task<> task, const Request& request);
template Task<unsigned> guarded<unsigned>(Task<unsigned> task, const Request& request);
template Task<Response> guarded<Response>(Task<Response> task, const Request& request);
template Task<core::Call> guarded<core::Call>(Task<core::Call> task, const Request& request);

Result<Match> Dispatcher::route(const Head& head, Request& request) const {
  const std::string_view host = request.headers.find("host").value_or("");
  BERTH_TRY(Target target, parse_path(head.target, host));
  request.path = std::move(target.path);
  const bool known = head.method != Head::Method::other;
  BERTH_TRY(Match match,
            router_.find(known ? std::optional{request.verb} : std::nullopt, target.segments));
  // Whoever a request is passed on to has rules of its own for queries.
  if (std::holds_alternative<RelayHandler>(match.route->handler)) return match;
  BERTH_TRY(request.query, parse_query(target.query_text));
  return match;
}

Task<core::Call> Dispatcher::admit(const Request& request, const Route& route) {
  BERTH_CO_TRY(core::Caller caller, co_await gate_.identify(request));
  BERTH_CO_DO(core::authorize(caller, route.needs));
  co_return make_call(std::move(caller), request);
}

class [[nodiscard]] Dispatcher::Share {
 public:
  explicit Share(Dispatcher& dispatcher) : dispatcher_(dispatcher) {}
  Share(Share&& other) noexcept
      : dispatcher_(other.dispatcher_), names_(std::exchange(other.names_, {})) {}
  Share& operator=(Share&&) = delete;
  ~Share() {
    for (const std::string& name : names_) {
      const auto found = dispatcher_.at_work_.find(name);
      if (--found->second == 0) dispatcher_.at_work_.erase(found);
    }
  }

  bool take(std::string name, std::size_t most) {
    std::size_t& count = dispatcher_.at_work_[name];
    if (count >= most) return false;
    ++count;
    names_.push_back(std::move(name));
    return true;
  }

 private:
  Dispatcher& dispatcher_;
  std::vector<std::string> names_;
};

// Whoever waits for news a thousand times must not shut the server for everybody else. The operator
// at the machine has it to himself.
Result<Dispatcher::Share> Dispatcher::share_of(const core::Caller& caller) {
  Share share{*this};
  if (caller.kind == core::CallerKind::local_operator) return share;
  const bool fits =
      share.take(caller.actor_id(), limits_.requests_of_caller_max) &&
      (!caller.company_id || share.take(caller.company_id->str(), limits_.requests_of_company_max));
  if (fits) return share;
  return fail(Errc::overloaded, "this key or its company has too many requests under way",
              "wait for the answers to some of them");
}

Task<Response> Dispatcher::answer(const PlainHandler& handler, const Request& request,
                                  const Match& match) {
  BERTH_CO_TRY(core::Call call, co_await admit(request, *match.route));
  BERTH_CO_TRY(const Share share, share_of(call.who));
  co_return co_await handler(std::move(call), request, match.values);
}

}  // namespace berth::http
