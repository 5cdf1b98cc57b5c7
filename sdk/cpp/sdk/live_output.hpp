#pragma once

#include "sdk/call.hpp"
#include "sdk/values.hpp"

#include <string>
#include <string_view>

namespace berth::sdk {

// One command's output on its two paths: to the host as it arrives, and as a whole at the end.
// Invalid UTF-8 bytes become '?'; a character split between two pieces is rejoined.
class LiveOutput {
 public:
  // Of each stream, in the response. Output beyond it is still sent live.
  static constexpr std::size_t kept_bytes_max = std::size_t{24} << 20;

  explicit LiveOutput(Call& call) : call_(call) {}

  void add(Stream stream, std::string_view bytes);
  // Puts both streams into the response, and notes there if it could not hold all of them.
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
