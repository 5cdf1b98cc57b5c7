#pragma once

#include "base/json.hpp"
#include "cli/console.hpp"
#include "cli/table.hpp"

#include <string>
#include <vector>

namespace berth::cli {

enum class Look { json, people };

// How a value of an object is shown in a table.
enum class Shown { plain, moment, state, words };

struct Column {
  std::string title;
  std::string key;  // wire name; "token/name" looks inside
  Shown shown = Shown::plain;
};

// Prints what a command found: tables for people, JSON for programs. The objects are printed as the
// server sent them, so that an older client shows what a newer server knows.
class Printer {
 public:
  struct Options {
    Look look = Look::people;
    bool colour = false;
    bool quiet = false;
    Time now;
  };
  Printer(Console& console, Options options) : console_(console), options_(options) {}

  void list(const bj::array& rows, const std::vector<Column>& columns) const;
  void object(const bj::value& value) const;
  // One sentence on what was done; silent for programs and with --quiet.
  void note(const std::string& text) const;
  void text(const std::string& text) const;

  Look look() const { return options_.look; }
  bool colour() const { return options_.colour; }
  Time now() const { return options_.now; }
  Console& console() const { return console_; }
  // The cell of a value, as tables show it.
  Cell cell(const bj::value& value, Shown shown) const;

 private:
  Console& console_;
  Options options_;
};

// JSON over several lines, for people who asked for JSON.
std::string pretty(const bj::value& value);

}  // namespace berth::cli
