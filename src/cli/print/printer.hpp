#pragma once

#include "base/json/json.hpp"
#include "base/names.hpp"
#include "cli/print/console.hpp"
#include "cli/print/table.hpp"

#include <string>
#include <vector>

namespace berth::cli {

// The values of -o. A table shows short ids and omits rarely needed columns; `wide` shows
// everything; `name` is one line per object: its name, or its id if it has none.
BOOST_DEFINE_ENUM_CLASS(Look, table, wide, name, json)

// How an object's value is shown in a table.
enum class Shown { plain, moment, state, words, bytes };
// `known`: if at least one row has it.
enum class When { always, wide, known };

struct Column {
  std::string title;
  std::string key;  // wire name; "token/name" looks inside
  Shown shown = Shown::plain;
  When when = When::always;
};

// Prints a command's result: tables for users, JSON for programs. Objects are printed as the server
// sent them, so that an older client shows a newer server's fields.
class Printer {
 public:
  struct Options {
    Look look = Look::table;
    bool colour = false;
    bool quiet = false;
    Time now;
  };
  Printer(Console& console, Options options) : console_(console), options_(options) {}

  void list(const bj::array& rows, const std::vector<Column>& columns) const;
  void object(const bj::value& value) const;
  // One sentence about what was done; silent for programs and with --quiet.
  void note(const std::string& text) const;
  void text(const std::string& text) const;

  Look look() const { return options_.look; }
  bool is_json() const { return options_.look == Look::json; }
  bool colour() const { return options_.colour; }
  Time now() const { return options_.now; }
  void set_now(Time now) { options_.now = now; }
  Console& console() const { return console_; }
  // The table cell of a value.
  Cell cell(const bj::value& value, Shown shown) const;

 private:
  Console& console_;
  Options options_;
};

// The colour of a state: green is good, red failed, yellow was ended on request, blue is running.
Paint paint_of_state(std::string_view state);
// "make 'two words'": as it could be typed again.
std::string command_text(const bj::array& argv);
// "1.4 GB"
std::string bytes_in_units(std::uint64_t bytes);
// JSON over several lines, for users who asked for JSON.
std::string pretty(const bj::value& value);

}  // namespace berth::cli
