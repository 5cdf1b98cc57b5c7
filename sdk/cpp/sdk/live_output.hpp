#pragma once

#include "sdk/call.hpp"
#include "sdk/values.hpp"

#include <string>
#include <string_view>

namespace berth::sdk {

// The output of one command on its two ways: to the host as it comes, and whole at the end. Bytes
// that are no UTF-8 are written as '?'; a character that was cut between two pieces is mended.
class LiveOutput {
 public:
  // Of each stream, in the answer. What is beyond is still sent live.
  static constexpr std::size_t kept_bytes_max = std::size_t{24} << 20;

  explicit LiveOutput(Call& call) : call_(call) {}

  void add(Stream stream, std::string_view bytes);
  // Puts both streams into the answer, and says there when it could not hold all of them.
  void finish(Executed& answer);

 private:
  struct Half {
    std::string kept = {};
    std::string cut = {};  // the beginning of a character
    bool is_full = false;
  };
  Half& half(Stream stream) { return stream == Stream::stdout_ ? out_ : err_; }
  void say(Stream stream, std::string text);

  Call& call_;
  Half out_;
  Half err_;
};

}  // namespace berth::sdk
