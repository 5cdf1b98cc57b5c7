#include "base/json.hpp"

#include "base/json_keys.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/stream_parser.hpp>

#include <cmath>

namespace berth {
namespace {

constexpr std::size_t issue_count_max = 64;
constexpr std::size_t depth_max = 48;

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
  bj::parse_options options;
  options.max_depth = depth_max;
  bj::stream_parser parser{{}, options};
  boost::system::error_code error;
  const std::size_t read = parser.write(text.data(), text.size(), error);
  if (!error) parser.finish(error);
  if (!error) {
    bj::value value = parser.release();
    if (repeated == RepeatedKeys::refuse) BERTH_DO(refuse_repeated_keys(text, value));
    return value;
  }
  return fail(Errc::bad_request,
              "the body is no JSON: " + error.message() + " near byte " + std::to_string(read),
              "send one JSON value, encoded as UTF-8");
}

namespace json_detail {

std::string serialize(const bj::value& value) {
  // Bytes from outside are to be cleaned where they come in; what was forgotten there must not make
  // a whole answer unreadable.
  std::string text = bj::serialize(value);
  if (!is_utf8(text)) text = as_utf8(text);
  return text;
}

std::optional<bool> decode_bool(const bj::value& in, const JsonAt& at, JsonIssues& issues) {
  if (in.is_bool()) return in.get_bool();
  issues.add(at, "is no boolean");
  return std::nullopt;
}

std::optional<double> decode_double(const bj::value& in, const JsonAt& at, JsonIssues& issues) {
  // 1e999 is a number in JSON and none in a double.
  if (in.is_number() && std::isfinite(in.to_number<double>())) return in.to_number<double>();
  issues.add(at, "is no number");
  return std::nullopt;
}

std::optional<std::string_view> decode_string(const bj::value& in, const JsonAt& at,
                                              JsonIssues& issues) {
  if (in.is_string()) return std::string_view{in.get_string().data(), in.get_string().size()};
  issues.add(at, "is no string");
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
    issues.add(at, "is no integer");
    return std::nullopt;
  }
  if (number && *number >= low && *number <= high) return number;
  issues.add(at, "is no integer from " + std::to_string(low) + " to " + std::to_string(high));
  return std::nullopt;
}

const bj::object* decode_object(const bj::value& in, const JsonAt& at, JsonIssues& issues) {
  if (in.is_object()) return &in.get_object();
  issues.add(at, "is no object");
  return nullptr;
}

const bj::array* decode_array(const bj::value& in, const JsonAt& at, JsonIssues& issues) {
  if (in.is_array()) return &in.get_array();
  issues.add(at, "is no array");
  return nullptr;
}

}  // namespace json_detail
}  // namespace berth
