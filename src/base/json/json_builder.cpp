#include "base/json/json_builder.hpp"

#include <boost/json/error.hpp>

#include <utility>

namespace berth {

namespace bj = boost::json;

bool JsonBuilder::on_object_end(std::size_t count, Failure& error) {
  if (count > keys_max_) {
    error = bj::error::object_too_large;
    return false;
  }
  bj::object object;
  // Odd, so that a key's slot depends on its whole hash, and with it on the table's address.
  if (count > 0) object.reserve((count + chance_ % (count / 4 + 16)) | 1U);
  const std::size_t first_key = keys_.size() - count;
  const std::size_t first = values_.size() - count;
  for (std::size_t i = 0; i < count; ++i) {
    object.insert_or_assign(keys_[first_key + i], std::move(values_[first + i]));
  }
  keys_.resize(first_key);
  values_.resize(first);
  values_.emplace_back(std::move(object));
  return true;
}

bool JsonBuilder::on_array_end(std::size_t count, Failure& /*error*/) {
  bj::array array;
  array.reserve(count);
  const std::size_t first = values_.size() - count;
  for (std::size_t i = first; i < values_.size(); ++i) array.push_back(std::move(values_[i]));
  values_.resize(first);
  values_.emplace_back(std::move(array));
  return true;
}

bool JsonBuilder::on_key_part(Text part, std::size_t /*size*/, Failure& /*error*/) {
  begun_.append(part.data(), part.size());
  return true;
}

bool JsonBuilder::on_key(Text part, std::size_t /*size*/, Failure& /*error*/) {
  begun_.append(part.data(), part.size());
  keys_.push_back(std::exchange(begun_, {}));
  return true;
}

bool JsonBuilder::on_string_part(Text part, std::size_t /*size*/, Failure& /*error*/) {
  begun_.append(part.data(), part.size());
  return true;
}

bool JsonBuilder::on_string(Text part, std::size_t /*size*/, Failure& /*error*/) {
  if (begun_.empty()) {
    values_.emplace_back(part);
    return true;
  }
  begun_.append(part.data(), part.size());
  values_.emplace_back(bj::string(begun_));
  begun_.clear();
  return true;
}

bool JsonBuilder::on_int64(std::int64_t number, Text /*text*/, Failure& /*error*/) {
  values_.emplace_back(number);
  return true;
}

bool JsonBuilder::on_uint64(std::uint64_t number, Text /*text*/, Failure& /*error*/) {
  values_.emplace_back(number);
  return true;
}

bool JsonBuilder::on_double(double number, Text /*text*/, Failure& /*error*/) {
  values_.emplace_back(number);
  return true;
}

bool JsonBuilder::on_bool(bool flag, Failure& /*error*/) {
  values_.emplace_back(flag);
  return true;
}

bool JsonBuilder::on_null(Failure& /*error*/) {
  values_.emplace_back(nullptr);
  return true;
}

}  // namespace berth
