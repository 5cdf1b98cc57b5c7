#pragma once

#include "base/json/json.hpp"
#include "core/output/attach.hpp"

#include <string>

// Messages that every socket of a command sends in the same form.
namespace berth::http {

struct TakenNews {
  core::AttachNews type = core::AttachNews::stdin_taken;
  std::int64_t bytes = 0;
};
BOOST_DESCRIBE_STRUCT(TakenNews, (), (type, bytes))

struct ErrorNews {
  core::AttachNews type = core::AttachNews::error;
  std::string error;
  std::string code;
};
BOOST_DESCRIBE_STRUCT(ErrorNews, (), (type, error, code))

inline std::string encode_error(const Error& error) {
  return encode_text(ErrorNews{.error = error.message, .code = std::string{name_of(error.code)}});
}

}  // namespace berth::http
