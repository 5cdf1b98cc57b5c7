#pragma once

#include <cstdint>
#include <iosfwd>
#include <span>
#include <string_view>

namespace berth::security_test {

// Where an attempt succeeds, so that its failure in a sandbox is meaningful.
enum class Shown : std::uint8_t {
  on_the_host,  // by root, without any sandbox
  apart,        // by root in fresh namespaces, if it would disturb the host
  with_terminal,
  nowhere,
};

// The required result of one attempt in a sandbox, whichever user made it.
struct Expectation {
  std::string_view attempt;
  // Correct verdicts, separated by " or "; a verdict may have more text after them.
  std::string_view expected;
  std::string_view why;
  Shown shown = Shown::on_the_host;
  // The verdict of a kernel without the feature, or the reason why it cannot be shown anywhere.
  std::string_view cannot_be_shown = {};
  // The limit without which the attempt must succeed, by its name in the isolation report.
  std::string_view needs = {};
};

void PrintTo(const Expectation& expectation, std::ostream* out);  // GoogleTest looks for it

std::span<const Expectation> expectations();

// How an attempt's result differs in a sandbox without namespaces.
struct MinimalDifference {
  std::string_view attempt;
  std::string_view expected;
  // If it succeeds: the feature that its isolation report lists as missing.
  std::string_view told = {};
};
std::span<const MinimalDifference> minimal_differences();

// Whether the verdict is one of those that were expected.
bool agrees(std::string_view verdict, std::string_view expected);

}  // namespace berth::security_test
