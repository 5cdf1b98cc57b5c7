#pragma once

#include "core/output/attach.hpp"
#include "engine/runs/runs.hpp"

#include <algorithm>
#include <deque>
#include <string>
#include <utility>
#include <variant>

namespace berth::http {

// A client's input that waits for the command to read. It holds at most one window, in which a
// piece counts for what storing it costs, however short it is.
class StdinQueue {
 public:
  using Piece = std::variant<std::string, places::EndOfInput>;

  // False when the window is full. One waiting end is enough, so another one is dropped.
  bool keep(Piece piece) {
    const bool is_end = std::holds_alternative<places::EndOfInput>(piece);
    if (is_end && std::exchange(end_waits_, true)) return true;
    const std::size_t cost = cost_of(piece);
    if (cost_ + cost > core::attach_stdin_window) {
      if (is_end) end_waits_ = false;
      return false;
    }
    cost_ += cost;
    waiting_.push_back(std::move(piece));
    return true;
  }

  bool empty() const { return waiting_.empty(); }

  // The oldest piece; it counts until it is settled.
  Piece take() {
    Piece piece = std::move(waiting_.front());
    waiting_.pop_front();
    if (std::holds_alternative<places::EndOfInput>(piece)) end_waits_ = false;
    taken_cost_ = cost_of(piece);
    return piece;
  }
  void settle() { cost_ -= std::exchange(taken_cost_, 0); }

  static std::size_t bytes_of(const Piece& piece) {
    const auto* bytes = std::get_if<std::string>(&piece);
    return bytes != nullptr ? bytes->size() : 0;
  }

 private:
  static std::size_t cost_of(const Piece& piece) {
    constexpr std::size_t cost_min = 64;
    return std::max(bytes_of(piece), cost_min);
  }

  std::deque<Piece> waiting_;
  std::size_t cost_ = 0;
  std::size_t taken_cost_ = 0;
  bool end_waits_ = false;
};

}  // namespace berth::http
