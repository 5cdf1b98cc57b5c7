#include "base/json/json.hpp"

#include "base/json/json_builder.hpp"
#include "base/json/json_keys.hpp"
#include "base/random.hpp"

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/stream_parser.hpp>

#include <array>
#include <bit>
#include <charconv>
#include <cmath>

namespace berth {
namespace {

constexpr std::size_t issue_count_max = 64;
constexpr std::size_t depth_max = 48;
// A shorter text has no room for enough colliding keys to slow the reader down.
constexpr std::size_t small_text_bytes = 8UL * 1024;
constexpr std::size_t asked_keys_max = 4096;

struct Parsed {
  bj::value value;
  std::size_t read = 0;
  boost::system::error_code error = {};
};

bj::parse_options parse_options() {
  bj::parse_options options;
  options.max_depth = depth_max;
  return options;
}

Parsed parse_small(std::string_view text) {
  std::array<unsigned char, 4096> room;  // enough for most documents, without an allocation
  bj::stream_parser parser{{}, parse_options(), room.data(), room.size()};
  Parsed out;
  out.read = parser.write(text.data(), text.size(), out.error);
  if (!out.error) parser.finish(out.error);
  if (!out.error) out.value = parser.release();
  return out;
}

Parsed parse_large(std::string_view text, std::size_t keys_max) {
  std::array<unsigned char, sizeof(std::uint32_t)> chance{};
  SystemRandom{}.fill(chance);
  bj::basic_parser<JsonBuilder> parser{parse_options(), std::bit_cast<std::uint32_t>(chance),
                                       keys_max};
  Parsed out;
  out.read = parser.write_some(false, text.data(), text.size(), out.error);
  if (!out.error && out.read < text.size()) out.error = bj::error::extra_data;
  if (!out.error) out.value = parser.handler().take();
  return out;
}

Result<> refuse_repeated_keys(std::string_view text, const bj::value& value) {
  const std::optional<std::string> pointer = repeated_key(text, value);
  if (!pointer) return {};
  JsonIssues issues{UnknownKeys::refuse, *pointer};
  issues.add(JsonAt{}, "is given twice");
  return std::unexpected(std::move(issues).to_error());
}

}  // namespace

std::string JsonAt::pointer() const {
  if (parent_ == nullptr) return {};
  return parent_->pointer() + "/" +
         (key_.data() != nullptr ? escaped_in_pointer(key_) : std::to_string(index_));
}

void JsonIssues::add(const JsonAt& at, std::string message) {
  if (list_.size() < issue_count_max) list_.push_back({prefix_ + at.pointer(), std::move(message)});
}

Error JsonIssues::to_error(Errc code) && {
  if (list_.empty()) return Error{code, "the value does not fit"};
  const auto& [path, wrong] = list_.front();
  const bool is_sentence = !wrong.empty() && wrong.front() >= 'A' && wrong.front() <= 'Z';
  std::string message =
      is_sentence ? wrong : (path.empty() ? std::string{"the body"} : path) + " " + wrong;
  if (!is_sentence && list_.size() > 1) {
    message += " (and " + std::to_string(list_.size() - 1) + " more)";
  }
  return Error{code, std::move(message), "correct the named fields and send it again",
               std::move(list_)};
}

Result<bj::value> parse_json(std::string_view text) {
  return parse_json(text, RepeatedKeys::last_counts);
}

Result<bj::value> parse_json(std::string_view text, RepeatedKeys repeated) {
  // Request data is copied and changed, and Boost sizes a copy's table by its keys.
  const bool is_asked = repeated == RepeatedKeys::refuse;
  const std::size_t keys_max = is_asked ? asked_keys_max : JsonBuilder::max_object_size;
  Parsed parsed = text.size() <= small_text_bytes ? parse_small(text) : parse_large(text, keys_max);
  if (!parsed.error) {
    if (is_asked) BERTH_DO(refuse_repeated_keys(text, parsed.value));
    return std::move(parsed.value);
  }
  if (parsed.error == bj::error::object_too_large) {
    return fail(Errc::bad_request,
                "an object near byte " + std::to_string(parsed.read) + " has more than " +
                    std::to_string(keys_max) + " keys",
                "send fewer keys, or a list");
  }
  return fail(Errc::bad_request,
              "the body is not JSON: " + parsed.error.message() + " near byte " +
                  std::to_string(parsed.read),
              "send one JSON value, encoded as UTF-8");
}

namespace json_detail {

void write_string(std::string& out, std::string_view text) {
  constexpr std::string_view hex = "0123456789abcdef";
  out += '"';
  std::size_t plain = 0;  // where the unescaped part begins
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte >= 0x20 && byte != '"' && byte != '\\') continue;
    out.append(text, plain, i - plain);
    plain = i + 1;
    constexpr std::string_view named = "\b\t\n\f\r\"\\";
    constexpr std::string_view letters = "btnfr\"\\";
    const std::size_t at = named.find(text[i]);
    out += '\\';
    if (at != std::string_view::npos) {
      out += letters[at];
    } else {
      out += "u00";
      out += hex[byte >> 4];
      out += hex[byte & 0xf];
    }
  }
  out.append(text, plain);
  out += '"';
}

void write_integer(std::string& out, std::int64_t number) {
  std::array<char, 24> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out.append(digits.data(), end);
}

void write_integer(std::string& out, std::uint64_t number) {
  std::array<char, 24> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out.append(digits.data(), end);
}

void write_value(std::string& out, const bj::value& value) {
  switch (value.kind()) {
    case bj::kind::null: out += "null"; return;
    case bj::kind::bool_: out += value.get_bool() ? "true" : "false"; return;
    case bj::kind::int64: write_integer(out, value.get_int64()); return;
    case bj::kind::uint64: write_integer(out, value.get_uint64()); return;
    case bj::kind::double_: out += bj::serialize(value); return;
    case bj::kind::string: write_string(out, value.get_string()); return;
    case bj::kind::array: write_value(out, value.get_array()); return;
    case bj::kind::object: write_value(out, value.get_object()); return;
  }
}

void write_value(std::string& out, const bj::object& value) {
  char before = '{';
  for (const auto& [key, item] : value) {
    out += before;
    write_string(out, key);
    out += ':';
    write_value(out, item);
    before = ',';
  }
  out += before == '{' ? "{}" : "}";
}

void write_value(std::string& out, const bj::array& value) {
  out += '[';
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (i > 0) out += ',';
    write_value(out, value[i]);
  }
  out += ']';
}

std::string finished(std::string text) {
  // Outside bytes should be cleaned where they enter; a missed place must not make a whole response
  // unreadable.
  if (!is_utf8(text)) text = as_utf8(text);
  return text;
}

std::optional<bool> decode_bool(const bj::value& in, const JsonAt& at, JsonIssues& issues) {
  if (in.is_bool()) return in.get_bool();
  issues.add(at, "is not a boolean");
  return std::nullopt;
}

std::optional<double> decode_double(const bj::value& in, const JsonAt& at, JsonIssues& issues) {
  // 1e999 is a number in JSON but does not fit a double.
  if (in.is_number() && std::isfinite(in.to_number<double>())) return in.to_number<double>();
  issues.add(at, "is not a number");
  return std::nullopt;
}

std::optional<std::string_view> decode_string(const bj::value& in, const JsonAt& at,
                                              JsonIssues& issues) {
  if (in.is_string()) return std::string_view{in.get_string().data(), in.get_string().size()};
  issues.add(at, "is not a string");
  return std::nullopt;
}

std::optional<std::int64_t> decode_integer(const bj::value& in, std::int64_t low, std::int64_t high,
                                           const JsonAt& at, JsonIssues& issues) {
  std::optional<std::int64_t> number;
  if (in.is_int64()) {
    number = in.get_int64();
  } else if (in.is_uint64()) {
    if (in.get_uint64() <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      number = static_cast<std::int64_t>(in.get_uint64());
    }
  } else if (in.is_double() && std::trunc(in.get_double()) == in.get_double() &&
             std::abs(in.get_double()) < 9e15) {
    number =
        static_cast<std::int64_t>(in.get_double());  // 1e3 and 1000.0 are the integer 1000 in JSON
  }
  if (!in.is_number()) {
    issues.add(at, "is not an integer");
    return std::nullopt;
  }
  if (number && *number >= low && *number <= high) return number;
  issues.add(at, "is not an integer from " + std::to_string(low) + " to " + std::to_string(high));
  return std::nullopt;
}

const bj::object* decode_object(const bj::value& in, const JsonAt& at, JsonIssues& issues) {
  if (in.is_object()) return &in.get_object();
  issues.add(at, "is not an object");
  return nullptr;
}

const bj::array* decode_array(const bj::value& in, const JsonAt& at, JsonIssues& issues) {
  if (in.is_array()) return &in.get_array();
  issues.add(at, "is not an array");
  return nullptr;
}

}  // namespace json_detail
}  // namespace berth
