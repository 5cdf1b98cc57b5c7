#pragma once

#include "base/json/json.hpp"

#include <optional>
#include <string>
#include <utility>

// A wall: something that keeps an attacker out, and whether it holds on this machine.
namespace berth::core {

BOOST_DEFINE_ENUM_CLASS(WallState, stands, weak, open)
BOOST_DEFINE_ENUM_CLASS(Attacker, network, local_user, agent, company, plugin)

struct Wall {
  std::string key;  // stable: programs branch on it
  std::string title;
  Attacker against = Attacker::agent;
  WallState state = WallState::stands;
  std::string reason = {};                 // one sentence
  std::optional<std::string> remedy = {};  // if the wall does not stand
};
BOOST_DESCRIBE_STRUCT(Wall, (), (key, title, against, state, reason, remedy))

inline Wall stands(Wall wall, std::string reason) {
  wall.state = WallState::stands;
  wall.reason = std::move(reason);
  wall.remedy.reset();
  return wall;
}

// For a wall that is weak or open.
inline Wall falls(Wall wall, WallState state, std::string reason, std::string remedy) {
  wall.state = state;
  wall.reason = std::move(reason);
  wall.remedy = std::move(remedy);
  return wall;
}

}  // namespace berth::core
