#pragma once

#include "base/clock.hpp"
#include "base/json/json.hpp"
#include "base/secret.hpp"

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace berth::plugins {

// The secret values that a worker was given. They are removed from everything the worker writes
// before it is stored, logged or shown. One worker serves all companies, so a line of one call may
// contain another call's value. One thread.
class GivenSecrets {
 public:
  struct Limits {
    // Starts after the last call that had the value: stderr arrives late, and clients inside the
    // worker keep what they were given.
    std::chrono::milliseconds remembered_for = std::chrono::hours{1};
    std::size_t remembered_max = 200;
    std::size_t remembered_bytes_max = std::size_t{64} << 10;
  };

  GivenSecrets(const Clock& clock, Limits limits);
  explicit GivenSecrets(const Clock& clock) : GivenSecrets(clock, Limits{}) {}
  GivenSecrets(const GivenSecrets&) = delete;
  GivenSecrets& operator=(const GivenSecrets&) = delete;
  ~GivenSecrets();

  // Values of a call in flight: never forgotten while this lives.
  class Hold {
   public:
    Hold() = default;
    Hold(Hold&& other) noexcept = default;
    Hold& operator=(Hold&& other) noexcept;
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    ~Hold();

   private:
    friend class GivenSecrets;
    struct Value;
    void let_go();
    std::vector<std::shared_ptr<Value>> values_;
  };

  Hold hold(std::span<const Secret> values);

  // One output stream of a command, which arrives in chunks: a value is hidden however it is split.
  // A value that the worker is given while the stream runs is hidden from then on. One that is
  // forgotten meanwhile remains hidden.
  class Stream {
   public:
    explicit Stream(GivenSecrets& given);
    Stream(Stream&& other) noexcept;
    ~Stream();

    // The part that can be released now.
    std::string push(std::string_view chunk);
    std::string flush();

   private:
    struct Link;
    void follow();

    GivenSecrets* given_;
    std::vector<std::unique_ptr<Link>> links_;  // like the values: the longest first
  };

  // A whole text.
  std::string clean(std::string_view text);
  // The beginning of a longer text: an end that may be the first part of a value is left out.
  std::string clean_beginning(std::string_view text);
  // Cleans every string and every key.
  bj::value clean_json(const bj::value& value);

 private:
  std::shared_ptr<Hold::Value> find_or_add(const Secret& value);
  void forget();

  const Clock& clock_;
  Limits limits_;
  // The longest first: a value that contains another one is hidden as a whole.
  std::vector<std::shared_ptr<Hold::Value>> values_;
};

}  // namespace berth::plugins
