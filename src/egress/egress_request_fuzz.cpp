#include "base/assert.hpp"
#include "egress/refusal.hpp"
#include "egress/request.hpp"

#include <cstddef>
#include <cstdint>

// Bytes from a client or an upstream, through everything that reads them. The first byte selects
// the sender and the piece size.
namespace berth::egress {
namespace {

class Sender {
 public:
  Sender(std::string_view bytes, std::size_t piece) : rest_(bytes), piece_(piece) {}

  // The next head; empty if the bytes end or are malformed.
  std::optional<std::string> head() {
    HeadEnd end;
    while (true) {
      const auto size = end.find(inbox_);
      if (!size) return std::nullopt;
      if (*size) {
        BERTH_ASSERT(**size <= inbox_.size() && inbox_.substr(0, **size).ends_with("\r\n\r\n"));
        std::string text = inbox_.substr(0, **size);
        inbox_.erase(0, **size);
        return text;
      }
      if (!more()) return std::nullopt;
    }
  }

  bool body(const Framing& framing) {
    BodyReader reader{framing};
    std::uint64_t content = 0;
    while (!reader.done()) {
      const Result<BodyPiece> piece = reader.take(inbox_);
      if (!piece) return false;
      BERTH_ASSERT(piece->used <= inbox_.size() && piece->content.size() <= piece->used);
      content += piece->content.size();
      inbox_.erase(0, piece->used);
      if (piece->used == 0 && !more()) return reader.end().has_value();
      BERTH_ASSERT(inbox_.size() <= 512 + piece_);  // nothing accumulates unused
    }
    BERTH_ASSERT(framing.kind != Framing::Kind::length || content == framing.length);
    return true;
  }

 private:
  bool more() {
    if (rest_.empty()) return false;
    inbox_ += rest_.substr(0, piece_);
    rest_.remove_prefix(std::min(piece_, rest_.size()));
    return true;
  }

  std::string inbox_;
  std::string_view rest_;
  std::size_t piece_;
};

void check_refusal(const Error& error) {
  const std::string text =
      refusal_text({.error = error, .rule = "r"}, Persistence::close, AnswerBody::present);
  BERTH_ASSERT(parse_response_head(text.substr(0, text.find("\r\n\r\n") + 4)).has_value());
}

bool check_request(Sender& client, Door door) {
  const auto text = client.head();
  if (!text) return false;
  const Result<RequestHead> head = parse_request_head(*text);
  const Result<ProxyRequest> request =
      head ? understand(*head, door) : std::unexpected(head.error());
  if (!request) {
    check_refusal(request.error());
    return false;
  }
  if (request->kind == ProxyRequest::Kind::tunnel) return false;
  // The upstream reads one request, for this host, with this framing.
  const std::string out = upstream_head(*request, request->target.authority());
  BERTH_ASSERT(out.find("\r\n\r\n") == out.size() - 4);
  const Result<RequestHead> again = parse_request_head(out);
  BERTH_ASSERT(again.has_value() && again->target == request->path);
  BERTH_ASSERT(again->fields.count("host") == 1);
  BERTH_ASSERT(again->fields.find("host") == request->target.authority());
  const Result<Framing> framing = framing_of(*again);
  BERTH_ASSERT(framing.has_value() && *framing == request->body);
  if (request->kind == ProxyRequest::Kind::callback) {
    BERTH_ASSERT(request->path.starts_with("/api/"));
    BERTH_ASSERT(request->path == "/api/health" || again->fields.count("authorization") == 1);
  }
  return client.body(request->body) && request->keeps_alive;
}

void check_answer(Sender& upstream) {
  const auto text = upstream.head();
  if (!text) return;
  const Result<ResponseHead> head = parse_response_head(*text);
  if (!head) return;
  const Result<Framing> framing = framing_of(*head, "GET");
  if (!framing) return;
  const std::string out = client_head(*head, *framing, Persistence::keep_alive);
  BERTH_ASSERT(out.find("\r\n\r\n") == out.size() - 4);
  const Result<ResponseHead> again = parse_response_head(out);
  BERTH_ASSERT(again.has_value() && framing_of(*again, "GET") == *framing);
  upstream.body(*framing);
}

}  // namespace
}  // namespace berth::egress

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace berth::egress;
  if (size == 0) return 0;
  const std::string_view bytes{reinterpret_cast<const char*>(data) + 1, size - 1};
  const std::size_t piece = data[0] % 32U == 0 ? size : data[0] % 32U;
  Sender sender{bytes, piece};
  if (data[0] >= 0xc0U) {
    check_answer(sender);
    return 0;
  }
  const Door door = data[0] >= 0x80U ? Door::callback : Door::proxy;
  while (check_request(sender, door)) {
  }
  return 0;
}
