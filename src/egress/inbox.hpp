#pragma once

#include <boost/asio/buffer.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace berth::egress {

// Bytes that arrived and are not used yet, contiguous. A view of them is valid until room is made
// for more.
class Inbox {
 public:
  std::string_view view() const { return std::string_view{bytes_}.substr(begin_, end_ - begin_); }
  std::size_t size() const { return end_ - begin_; }

  boost::asio::mutable_buffer room_for(std::size_t size) {
    if (begin_ == end_) begin_ = end_ = 0;
    if (end_ + size > bytes_.size() && begin_ > 0) {
      bytes_.erase(0, begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    if (end_ + size > bytes_.size()) bytes_.resize(end_ + size);
    return boost::asio::buffer(bytes_.data() + end_, size);
  }
  void arrived(std::size_t size) { end_ += size; }
  void used(std::size_t size) { begin_ += size; }
  // Releases memory if it is empty.
  void shrink() {
    if (begin_ != end_) return;
    begin_ = end_ = 0;
    bytes_ = {};
  }

 private:
  std::string bytes_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace berth::egress
