#include "base/assert.hpp"
#include "base/async/task_group.hpp"
#include "base/log.hpp"
#include "http/endpoint.hpp"
#include "http/server/dispatcher.hpp"
#include "http/server/message/writer.hpp"

#include <boost/asio/io_context.hpp>

#include <cstddef>
#include <cstdint>

// Client bytes through everything but the socket: reader, target, router, gate, decoding, handler
// and the response text. The first byte sets the size of the pieces in which they arrive.
namespace berth::http {
namespace {

BOOST_DEFINE_ENUM_CLASS(Colour, red, blue)

struct FuzzPath {
  core::CompanyId company_id;
  std::int32_t number;
};
BOOST_DESCRIBE_STRUCT(FuzzPath, (), (company_id, number))

struct FuzzQuery {
  std::optional<std::int64_t> limit;
  std::optional<std::string> after;
  std::optional<bool> all;
  std::optional<Colour> colour;
};
BOOST_DESCRIBE_STRUCT(FuzzQuery, (), (limit, after, all, colour))

struct FuzzBody {
  std::string name;
  std::optional<std::vector<std::int64_t>> sizes;
};
BOOST_DESCRIBE_STRUCT(FuzzBody, (), (name, sizes))

Task<core::Stored<FuzzBody>> keep(core::Call /*call*/, Input<FuzzPath, FuzzQuery, FuzzBody> input) {
  co_return core::Stored<FuzzBody>{.value = std::move(input.body)};
}

Task<core::Listing<std::int64_t>> list(core::Call /*call*/,
                                       Input<None, FuzzQuery, None> /*input*/) {
  co_return core::Listing<std::int64_t>{.rows = {1}, .next = "cursor"};
}

std::vector<Route> routes() {
  return {
      Endpoint<FuzzPath, FuzzQuery, FuzzBody, core::Stored<FuzzBody>>{
          .verb = Verb::post,
          .path = "/a/{company_id}/{number}",
          .needs = core::Permission::open,
          .tag = "test",
          .says = "Test",
          .call = keep},
      Endpoint<None, FuzzQuery, None, core::Listing<std::int64_t>>{.path = "/b",
                                                                   .needs = core::Permission::open,
                                                                   .tag = "test",
                                                                   .says = "Test",
                                                                   .call = list}};
}

class OpenGate final : public Gate {
 public:
  Task<core::Caller> identify(const Request& /*request*/) override {
    co_return core::Caller{.kind = core::CallerKind::local_operator};
  }
};

class Pipe {
 public:
  // Every request in the bytes, one after the other, until one is rejected or the bytes end.
  void run(std::string_view bytes, std::size_t piece) {
    inbox_.clear();
    rest_ = bytes;
    piece_ = piece;
    while (exchange()) {
    }
  }

 private:
  bool exchange() {
    RequestReader reader{request_, limits_};
    if (!read(reader, RequestReader::Stage::body)) return false;
    auto match = dispatcher_.route(reader.head(), request_);
    if (!match) return false;
    if (reader.stage() == RequestReader::Stage::body) {
      if (!reader.limit_body(dispatcher_.body_bytes_max(*match->route))) return false;
      if (!read(reader, RequestReader::Stage::done)) return false;
      BERTH_ASSERT(request_.body.size() <= limits_.body_bytes_max);
    }
    TaskGroup tasks{loop_.get_executor()};
    tasks.start("fuzz", answer(*match));
    loop_.restart();
    loop_.run();
    return reader.keeps_alive();
  }

  bool read(RequestReader& reader, RequestReader::Stage wanted) {
    while (reader.stage() < wanted) {
      const auto used = reader.feed(inbox_);
      if (!used) return false;
      BERTH_ASSERT(*used <= inbox_.size());
      inbox_.erase(0, *used);
      if (*used > 0) continue;
      if (rest_.empty()) return false;
      inbox_ += rest_.substr(0, piece_);
      rest_.remove_prefix(std::min(piece_, rest_.size()));
      BERTH_ASSERT(inbox_.size() <= limits_.header_bytes_max + piece_);
    }
    return true;
  }

  Task<> answer(const Match& match) {
    const auto& handler = std::get<PlainHandler>(match.route->handler);
    auto answered =
        co_await guarded(dispatcher_.answer(handler, request_, match, Place::usual), request_);
    BERTH_ASSERT(answered || answered.error().code != Errc::bug);
    const Response response =
        answered ? std::move(answered->response) : error_response(answered.error());
    std::string out;
    append_head(out, response, {.path = request_.path, .request_id = "id", .date = "now"});
    // The only empty line is the last one, whatever the request put into the response.
    BERTH_ASSERT(out.find("\r\n\r\n") == out.size() - 4);
    co_return Result<>{};
  }

  Limits limits_{.header_bytes_max = 1024, .body_bytes_max = 512};
  Router router_{routes()};
  OpenGate gate_;
  Dispatcher dispatcher_{router_, gate_, limits_};
  asio::io_context loop_;
  Request request_;
  std::string inbox_;
  std::string_view rest_;
  std::size_t piece_ = 1;
};

}  // namespace
}  // namespace berth::http

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  berth::log::configure(berth::log::Level::off, berth::log::Format::text);
  berth::http::Pipe pipe;
  const std::string_view bytes{reinterpret_cast<const char*>(data), size};
  pipe.run(bytes.substr(1), data[0] % 64U == 0 ? size : data[0] % 64U);
  return 0;
}
