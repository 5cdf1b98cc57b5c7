#pragma once

#include <boost/json/string_view.hpp>
#include <boost/json/value.hpp>
#include <boost/system/error_code.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace berth {

// Builds the value from a JSON parser's events. Boost's own builder makes tables with as many slots
// as an object has keys, which the sender chooses. With a power of two the sender can predict a
// key's slot, and one body with 64 Ki keys for the same slot takes seconds. The tables made here
// have a size that the sender cannot know.
class JsonBuilder {
 public:
  static constexpr std::size_t max_object_size = boost::json::object::max_size();
  static constexpr std::size_t max_array_size = boost::json::array::max_size();
  static constexpr std::size_t max_key_size = boost::json::string::max_size();
  static constexpr std::size_t max_string_size = boost::json::string::max_size();

  // An object with more than `keys_max` keys fails with `object_too_large`.
  JsonBuilder(std::uint32_t chance, std::size_t keys_max) : chance_(chance), keys_max_(keys_max) {}

  boost::json::value take() { return std::move(values_.back()); }

  using Text = boost::json::string_view;
  using Failure = boost::system::error_code;
  bool on_document_begin(Failure& /*error*/) { return true; }
  bool on_document_end(Failure& /*error*/) { return true; }
  bool on_object_begin(Failure& /*error*/) { return true; }
  bool on_object_end(std::size_t count, Failure& error);
  bool on_array_begin(Failure& /*error*/) { return true; }
  bool on_array_end(std::size_t count, Failure& error);
  bool on_key_part(Text part, std::size_t size, Failure& error);
  bool on_key(Text part, std::size_t size, Failure& error);
  bool on_string_part(Text part, std::size_t size, Failure& error);
  bool on_string(Text part, std::size_t size, Failure& error);
  bool on_number_part(Text /*part*/, Failure& /*error*/) { return true; }
  bool on_int64(std::int64_t number, Text text, Failure& error);
  bool on_uint64(std::uint64_t number, Text text, Failure& error);
  bool on_double(double number, Text text, Failure& error);
  bool on_bool(bool flag, Failure& error);
  bool on_null(Failure& error);
  bool on_comment_part(Text /*part*/, Failure& /*error*/) { return true; }
  bool on_comment(Text /*part*/, Failure& /*error*/) { return true; }

 private:
  std::uint32_t chance_;
  std::size_t keys_max_;
  std::string begun_;  // a string or key that came in parts
  std::vector<std::string> keys_;
  std::vector<boost::json::value> values_;
};

}  // namespace berth
