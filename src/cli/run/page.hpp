#pragma once

#include "base/json/json.hpp"
#include "base/time.hpp"

#include <cstddef>
#include <string>

// A run in human-readable form.
namespace berth::cli {

struct PageLook {
  std::size_t columns = 80;
  bool colour = false;
  Time now = {};
};

// The important facts about one run, one per line.
std::string run_page(const bj::value& run, const PageLook& look);

// The phases of a run as lines, each with its time and a bar at its position in the whole; an
// unfinished phase lasts until now.
std::string phases_picture(const bj::array& phases, const PageLook& look);

// What a queued run waits for, on one line; empty once it runs.
std::string waiting_line(const bj::value& run);

// The steps of an environment test, each with its mark, its time and its remedy.
std::string probe_page(const bj::value& report, const PageLook& look);

}  // namespace berth::cli
