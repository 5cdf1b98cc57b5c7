#pragma once

#include <cstdint>
#include <iosfwd>
#include <span>
#include <string_view>

namespace berth::security_test {

// Where an attempt succeeds, so that its failure in a sandbox says something.
enum class Shown : std::uint8_t {
  on_the_host,  // by root, without any sandbox
  apart,        // by root in fresh namespaces, where it would disturb the host
  with_terminal,
  nowhere,
};

// What must come of one attempt in a sandbox, whoever made it.
struct Expectation {
  std::string_view attempt;
  // Verdicts that are right, separated by " or "; a verdict may say more after them.
  std::string_view expected;
  std::string_view why;
  Shown shown = Shown::on_the_host;
  // The verdict of a kernel without the thing, or the reason where it is shown nowhere.
  std::string_view cannot_be_shown = {};
  // The limit without which the attempt is bound to succeed, as isolation names it.
  std::string_view needs = {};
};

void PrintTo(const Expectation& expectation, std::ostream* out);  // GoogleTest looks for it

std::span<const Expectation> expectations();

// What comes of an attempt otherwise in a sandbox without namespaces.
struct MinimalDifference {
  std::string_view attempt;
  std::string_view expected;
  // Where it succeeds: the feature that its isolation says is missing.
  std::string_view told = {};
};
std::span<const MinimalDifference> minimal_differences();

// Whether the verdict is one of those that were expected.
bool agrees(std::string_view verdict, std::string_view expected);

}  // namespace berth::security_test
