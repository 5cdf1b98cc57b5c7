#include "plugins/channel.hpp"

#include "base/assert.hpp"

#include <boost/asio/io_context.hpp>

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>

namespace {

using namespace berth;
using namespace berth::plugins;

class Deaf final : public Peer {
 public:
  asio::awaitable<Reply> answer(Request request) override { co_return request.params; }
  bool hear(Notification notification) override { return notification.method == "log"; }
  void unread(std::string_view /*why*/, std::string_view /*line*/) override {}
};

Task<> read_all(Channel& channel) {
  co_await channel.run();  // it may end in any way, but it must end
  channel.close("it has said all");
  co_return Result<>{};
}

Task<> ask(Channel& channel, bool& answered) {
  co_await channel.call("health", bj::object{});
  answered = true;
  co_return Result<>{};
}

}  // namespace

// Whatever a worker writes, the channel ends, and every open call gets a response.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  std::signal(SIGPIPE, SIG_IGN);
  std::array<int, 2> in{};
  std::array<int, 2> out{};
  if (::pipe(in.data()) != 0 || ::pipe(out.data()) != 0) return 0;
  asio::io_context loop;
  Deaf peer;
  Channel channel{loop.get_executor(),
                  Fd{in[0]},
                  Fd{out[1]},
                  peer,
                  {.line_in_max = 512, .garbage_lines_max = 64}};
  bool answered = false;
  TaskGroup tasks{loop.get_executor()};
  tasks.start("read", read_all(channel));
  tasks.start("ask", ask(channel, answered));
  const std::size_t some = std::min<std::size_t>(size, 60'000);  // fits into the pipe
  const ssize_t written = ::write(in[1], bytes, some);
  ::close(in[1]);
  loop.run();
  ::close(out[0]);
  BERTH_ASSERT(written < 0 || answered);
  return 0;
}
