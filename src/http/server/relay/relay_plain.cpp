#include "http/server/relay/relay.hpp"

namespace berth::http {

Task<unsigned> serve_relay(TcpSocket& stream, Relaying what, Traffic& traffic,
                           DrainSignal& drained) {
  return run_relay(stream, std::move(what), traffic, drained);
}

}  // namespace berth::http
