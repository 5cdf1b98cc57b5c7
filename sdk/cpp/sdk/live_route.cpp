#include "sdk/live_route.hpp"

#include "base/base64.hpp"
#include "base/text.hpp"

namespace berth::sdk {
namespace {

// A host ends a stream that sends more than a million characters at a time.
constexpr std::size_t piece_bytes_max = 512 * 1024;

}  // namespace

LiveRoute::LiveRoute(Call& call, const OpenLogin& request, std::string session)
    : host_(call.host()),
      kind_(Kind::login),
      route_(request.host_route_id),
      session_(std::move(session)) {}

LiveRoute::LiveRoute(Call& call, const OpenChannel& request, std::string session)
    : host_(call.host()),
      kind_(Kind::channel),
      route_(request.host_route_id),
      session_(std::move(session)) {}

void LiveRoute::notify(std::string_view method, bj::object more) {
  more["hostRouteId"] = route_;
  more["workerSessionId"] = session_;
  host_.notify(method, std::move(more), "");
}

void LiveRoute::say(std::string_view bytes) {
  const std::lock_guard lock{lock_};
  std::string all{bytes};
  if (kind_ == Kind::login) {
    all = std::exchange(cut_, {}) + all;
    const std::size_t whole = all.size() - cut_character_length(all);
    cut_ = all.substr(whole);
    all = as_utf8(std::string_view{all}.substr(0, whole));
  }
  for (std::string_view rest = all; !rest.empty();) {
    const std::string_view piece =
        kind_ == Kind::login ? clipped(rest, piece_bytes_max) : rest.substr(0, piece_bytes_max);
    rest.remove_prefix(piece.size());
    if (kind_ == Kind::login) {
      notify("loginPty.output", {{"chunk", piece}});
    } else {
      notify("duplexChannel.data", {{"chunk", base64(piece)}});
    }
  }
}

void LiveRoute::end(std::optional<std::int64_t> exit_code) {
  const std::lock_guard lock{lock_};
  bj::object more{{"exitCode", exit_code ? bj::value(*exit_code) : bj::value(nullptr)}};
  if (kind_ == Kind::channel) more["transportClosed"] = false;
  notify(kind_ == Kind::login ? "loginPty.exit" : "duplexChannel.exit", std::move(more));
}

}  // namespace berth::sdk
