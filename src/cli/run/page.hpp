#pragma once

#include "base/json/json.hpp"
#include "base/time.hpp"

#include <cstddef>
#include <string>

// A run as a person reads it.
namespace berth::cli {

struct PageLook {
  std::size_t columns = 80;
  bool colour = false;
  Time now = {};
};

// Everything worth knowing of one run, a fact a line.
std::string run_page(const bj::value& run, const PageLook& look);

// The phases of a run under each other, each with its time and a bar at its place in the whole; a
// phase that is not over goes on until now.
std::string phases_picture(const bj::array& phases, const PageLook& look);

// What a run that has not begun waits for, on one line; empty once it runs.
std::string waiting_line(const bj::value& run);

// The steps of a test of an environment, each with its mark, its time and what to do about it.
std::string probe_page(const bj::value& report, const PageLook& look);

}  // namespace berth::cli
