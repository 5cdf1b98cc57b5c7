#include "cli/net/client.hpp"

#include "base/json/peek.hpp"
#include "cli/version.hpp"

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <utility>

namespace berth::cli {
namespace {

namespace http = boost::beast::http;
using Parser = http::response_parser<http::string_body>;
using Message = http::response<http::string_body>;

constexpr std::uint32_t header_bytes_max = 65536;

Deadline after(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

std::unexpected<Error> no_berth(const Endpoint& server, const std::string& why) {
  return fail(Errc::server_unreachable, server.url() + " is not a Berth server: " + why,
              "start one with 'berth serve' or name it with --url");
}

// Reads a response as it arrives.
class AnswerReader {
 public:
  AnswerReader(Connection& connection, const Endpoint& server,
               const boost::optional<std::uint64_t>& body_bytes_max)
      : connection_(connection), server_(server) {
    parser_.eager(true);
    parser_.header_limit(header_bytes_max);
    parser_.body_limit(body_bytes_max);
  }

  Parser& parser() { return parser_; }
  bool done() const { return ended_ || parser_.is_done(); }

  // Reads once and parses complete lines; a split line waits for its rest.
  Result<> pump(Deadline deadline) {
    std::array<char, 16384> chunk{};
    BERTH_TRY(const std::size_t got, connection_.read(chunk, deadline));
    boost::system::error_code error;
    if (got == 0) {
      ended_ = true;
      if (parser_.is_header_done()) parser_.put_eof(error);
      if (error || !parser_.is_header_done()) return no_berth(server_, "the response ended early");
      return {};
    }
    pending_.append(chunk.data(), got);
    while (!pending_.empty() && !parser_.is_done()) {
      const boost::asio::const_buffer bytes{pending_.data(), pending_.size()};
      pending_.erase(0, parser_.put(bytes, error));
      if (error == http::error::need_more) break;
      if (error) return no_berth(server_, error.message());
    }
    if (pending_.size() > std::size_t{2} * header_bytes_max)
      return no_berth(server_, "its lines never end");
    return {};
  }

 private:
  Connection& connection_;
  const Endpoint& server_;
  Parser parser_;
  std::string pending_;
  bool ended_ = false;
};

std::optional<std::string> header(const Message& answer, std::string_view name) {
  const auto found = answer.find(boost::beast::string_view{name.data(), name.size()});
  if (found == answer.end()) return std::nullopt;
  return std::string{found->value()};
}

// The whole response; an unsuccessful one is returned as its error.
Result<Message> exchange(const Endpoint& server, const ClientLimits& limits, std::string_view head,
                         std::string_view body) {
  BERTH_TRY(Connection connection, Connection::open(server, after(limits.connect)));
  const Deadline deadline = after(limits.answer);
  BERTH_DO(connection.write(head, deadline));
  if (!body.empty()) BERTH_DO(connection.write(body, deadline));
  AnswerReader reader{connection, server, limits.body_bytes_max};
  while (!reader.done()) BERTH_DO(reader.pump(deadline));
  Message answer = reader.parser().release();
  const unsigned status = answer.result_int();
  if (status < 200 || status >= 300) return std::unexpected(error_of(status, answer.body()));
  return answer;
}

// The most likely meaning of an unknown code, so that the exit code is right with a newer server.
Errc errc_of(unsigned status) {
  switch (status) {
    case 400: return Errc::validation_failed;
    case 401: return Errc::unauthenticated;
    case 403: return Errc::forbidden;
    case 404: return Errc::route_not_found;
    case 409: return Errc::conflict;
    case 412: return Errc::precondition_failed;
    case 422: return Errc::unprocessable;
    case 429:
    case 503: return Errc::overloaded;
    default: return Errc::bug;
  }
}

std::string text_at(const bj::object& object, std::string_view key) {
  return peek<std::string>(object, key).value_or("");
}

void take_issues(const bj::array& list, Error& error) {
  for (const bj::value& item : list) {
    if (!item.is_object()) continue;
    error.issues.push_back(
        {text_at(item.get_object(), "path"), text_at(item.get_object(), "message")});
  }
}

// Details are a list of invalid fields, or an object that may hold one and lists of strings.
void take_details(const bj::value& details, Error& error) {
  if (details.is_array()) return take_issues(details.get_array(), error);
  if (!details.is_object()) return;
  for (const auto& [key, value] : details.get_object()) {
    if (!value.is_array()) continue;
    if (key == "issues") {
      take_issues(value.get_array(), error);
      continue;
    }
    for (const bj::value& word : value.get_array()) {
      if (word.is_string()) error.facts[std::string{key}].emplace_back(word.get_string());
    }
  }
}

}  // namespace

std::optional<std::string> next_of(std::string_view link_header) {
  while (!link_header.empty()) {
    const std::size_t open = link_header.find('<');
    const std::size_t close = link_header.find('>', open);
    if (open == std::string_view::npos || close == std::string_view::npos) return std::nullopt;
    std::string_view target = link_header.substr(open + 1, close - open - 1);
    const std::string_view rest = link_header.substr(close + 1);
    const std::string_view parameters = rest.substr(0, rest.find('<'));
    if (parameters.find("rel=\"next\"") != std::string_view::npos ||
        parameters.find("rel=next") != std::string_view::npos) {
      if (const std::size_t scheme = target.find("://"); scheme != std::string_view::npos) {
        const std::size_t path = target.find('/', scheme + 3);
        if (path == std::string_view::npos) return std::nullopt;
        target.remove_prefix(path);
      }
      if (!target.starts_with('/')) return std::nullopt;
      return std::string{target};
    }
    link_header = rest.substr(parameters.size());
  }
  return std::nullopt;
}

Error error_of(unsigned status, std::string_view body) {
  Error error{.code = errc_of(status), .message = "the server answered " + std::to_string(status)};
  const Result<bj::value> parsed = parse_json(body);
  if (!parsed || !parsed->is_object()) return error;
  const bj::object& object = parsed->get_object();
  if (std::string message = text_at(object, "error"); !message.empty()) {
    error.message = std::move(message);
  }
  error.remedy = text_at(object, "remedy");
  if (const std::string code = text_at(object, "code"); !code.empty()) {
    if (const auto known = parse_errc(code)) {
      error.code = *known;
    } else {
      error.message += " (" + code + ")";
    }
  }
  if (const auto details = peek<bj::value>(object, "details")) take_details(*details, error);
  return error;
}

std::optional<Errc> parse_errc(std::string_view name) {
#define X(code, kind) \
  if (name == #code) return Errc::code;
  BERTH_ERRC_LIST(X)
#undef X
  return std::nullopt;
}

std::string url_encoded(std::string_view text) {
  static constexpr char digits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.' || c == '~';
    if (plain) {
      out += c;
    } else {
      out += {'%', digits[byte >> 4], digits[byte & 15]};
    }
  }
  return out;
}

Client::Client(Endpoint server, std::optional<Secret> token, ClientLimits limits)
    : server_(std::move(server)), token_(std::move(token)), limits_(limits) {}

std::string Client::head_of(const Request& request, std::string_view accept) const {
  std::string head = request.method + " " + server_.prefix + request.path + " HTTP/1.1\r\n";
  const auto add = [&](std::string_view name, std::string_view value) {
    head.append(name).append(": ").append(value).append("\r\n");
  };
  add("Host", server_.authority());
  add("User-Agent", "berth/" + std::string{version()});
  add("Accept", accept);
  add("Connection", "close");
  if (token_) add("Authorization", "Bearer " + std::string{token_->reveal()});
  if (request.if_match) add("If-Match", *request.if_match);
  return head;
}

Result<Answer> Client::send(const Request& request) const {
  std::string message = head_of(request, "application/json");
  if (request.body) {
    const std::string body = encode_text(*request.body);
    message += "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
               "\r\n\r\n" + body;
  } else {
    message += request.method == "GET" ? "\r\n" : "Content-Length: 0\r\n\r\n";
  }
  const Result<Message> received = exchange(server_, limits_, message, {});
  ::explicit_bzero(message.data(), message.size());  // it may contain a token or a secret value
  if (!received) return std::unexpected(received.error());
  Answer answer{.status = received->result_int(),
                .body = nullptr,
                .etag = header(*received, "ETag"),
                .next = {}};
  if (const auto link = header(*received, "Link")) answer.next = next_of(*link);
  if (received->body().empty()) return answer;
  Result<bj::value> parsed = parse_json(received->body());
  if (!parsed) return no_berth(server_, "the response is not JSON");
  answer.body = *std::move(parsed);
  return answer;
}

Result<Bytes> Client::transfer(const Transfer& wanted) const {
  std::string head = head_of({.method = wanted.method, .path = wanted.path}, "*/*");
  if (wanted.method != "GET") {
    head += "Content-Type: application/octet-stream\r\nContent-Length: " +
            std::to_string(wanted.bytes.size()) + "\r\n";
  }
  Result<Message> received = exchange(server_, limits_, head + "\r\n", wanted.bytes);
  ::explicit_bzero(head.data(), head.size());
  if (!received) return std::unexpected(std::move(received).error());
  Bytes answer{.bytes = std::move(received->body()),
               .content_type = header(*received, "Content-Type").value_or(""),
               .mode = header(*received, "X-File-Mode").value_or(""),
               .is_whole = header(*received, "X-Eof").value_or("true") == "true"};
  if (const auto time = parse_iso8601(header(*received, "X-File-Mtime").value_or(""))) {
    answer.mtime = *time;
  }
  std::uint64_t bytes = 0;
  const std::string size = header(*received, "X-File-Bytes").value_or("");
  const auto [stop, error] = std::from_chars(size.data(), size.data() + size.size(), bytes);
  if (!size.empty() && error == std::errc{}) answer.file_bytes = bytes;
  return answer;
}

Result<bj::array> Client::list(const std::string& path, std::int64_t limit) const {
  constexpr std::int64_t page_max = 1000;
  bj::array rows;
  const char* joint = path.find('?') == std::string::npos ? "?" : "&";
  std::string at = path + joint + "limit=" + std::to_string(std::min(limit, page_max));
  while (static_cast<std::int64_t>(rows.size()) < limit) {
    BERTH_TRY(Answer answer, send({.path = at}));
    if (!answer.body.is_array()) return no_berth(server_, "the list is not a JSON array");
    if (answer.body.get_array().empty()) break;
    for (bj::value& row : answer.body.get_array()) {
      if (static_cast<std::int64_t>(rows.size()) < limit) rows.push_back(std::move(row));
    }
    if (!answer.next) break;
    at = *std::move(answer.next);
  }
  return rows;
}

Result<> Client::follow(const std::string& path,
                        const std::function<bool(const Event&)>& take) const {
  const std::string message = head_of({.path = path}, "text/event-stream") + "\r\n";
  BERTH_TRY(Connection connection, Connection::open(server_, after(limits_.connect)));
  BERTH_DO(connection.write(message, after(limits_.answer)));
  AnswerReader reader{connection, server_, boost::none};
  Parser& parser = reader.parser();
  EventReader events;
  while (!reader.done()) {
    BERTH_DO(reader.pump(after(limits_.silence)));
    if (!parser.is_header_done() || parser.get().result_int() != 200) continue;
    // Removed as it arrives: a stream has no end to wait for.
    const std::string text = std::exchange(parser.get().body(), {});
    BERTH_TRY(const bool wants_more, events.feed(text, take));
    if (!wants_more) return {};
  }
  if (parser.get().result_int() == 200) return {};
  return std::unexpected(error_of(parser.get().result_int(), parser.get().body()));
}

}  // namespace berth::cli
