#include "core/rows/secret.hpp"

#include <gtest/gtest.h>

namespace berth::core {
namespace {

TEST(SecretKeyOf, IsTheNameInLowerCaseWithDashes) {
  constexpr std::pair<std::string_view, std::string_view> cases[] = {
      {"DB password (prod)", "db-password-prod"},
      {"API_KEY", "api_key"},
      {"already-a-key", "already-a-key"},
      {"a  --  b", "a-b"},
      {"--a--", "a"},
      {"  spaced  ", "spaced"},
      {"v1.2/x", "v1-2-x"},
      {"gr\u00fcn", "gr-n"},
      {"_", "_"},
      {"", ""},
      {"---", ""},
      {"\u00fc\u00df", ""},
  };
  for (const auto& [name, key] : cases) EXPECT_EQ(secret_key_of(name), key) << name;
}

TEST(SecretKeyOf, HasAtMost120CharactersAndNoDashAtItsEnd) {
  EXPECT_EQ(secret_key_of(std::string(500, 'A')), std::string(120, 'a'));
  EXPECT_EQ(secret_key_of(std::string(119, 'a') + " b"), std::string(119, 'a'));
}

TEST(SecretKeyOf, IsItsOwnKey) {
  for (const std::string_view name : {"DB password (prod)", "a  --  b", "X_1"}) {
    const std::string key = secret_key_of(name);
    EXPECT_EQ(secret_key_of(key), key);
  }
}

}  // namespace
}  // namespace berth::core
