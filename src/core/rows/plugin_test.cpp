#include "core/rows/plugin.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace berth::core {
namespace {

using S = PluginState;
using E = PluginEvent;

// The life cycle, state by state. Any other step must be rejected.
const std::map<S, std::map<E, S>>& life() {
  static const std::map<S, std::map<E, S>> all = {
      {S::installed,
       {{E::activated, S::ready}, {E::failed, S::error}, {E::uninstalled, S::uninstalled}}},
      {S::ready,
       {{E::activated, S::ready},
        {E::disabled, S::disabled},
        {E::failed, S::error},
        {E::review_needed, S::upgrade_pending},
        {E::uninstalled, S::uninstalled}}},
      {S::disabled, {{E::activated, S::ready}, {E::uninstalled, S::uninstalled}}},
      {S::error, {{E::activated, S::ready}, {E::uninstalled, S::uninstalled}}},
      {S::upgrade_pending,
       {{E::activated, S::ready}, {E::failed, S::error}, {E::uninstalled, S::uninstalled}}},
      {S::uninstalled, {{E::installed_again, S::installed}}},
  };
  return all;
}

TEST(Plugin, movesOnlyAsItsLifeSays) {
  for (const S from : all<S>()) {
    for (const E on : all<E>()) {
      SCOPED_TRACE(std::string{name_of(from)} + " " + std::string{name_of(on)});
      const auto& known = life().at(from);
      const auto expected = known.find(on);
      const Result<S> to = advance(from, on);
      ASSERT_EQ(to.has_value(), expected != known.end());
      if (to) EXPECT_EQ(*to, expected->second);
      if (!to) EXPECT_EQ(to.error().code, Errc::conflict);
    }
  }
}

}  // namespace
}  // namespace berth::core
