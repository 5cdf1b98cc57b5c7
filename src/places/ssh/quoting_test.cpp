#include "places/ssh/quoting.hpp"

#include "places/ssh/child_process.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <gtest/gtest.h>

namespace berth::places::ssh {
namespace {

std::string said_by_shell(const std::string& word) {
  asio::io_context loop;
  std::string out;
  const std::string script = "berth_newline='\n'; printf %s " + word;
  asio::co_spawn(
      loop, run_program({.program = "/bin/sh", .arguments = {"-c", script}}, {}),
      [&](const std::exception_ptr&, const Result<Finished>& end) { out = end ? end->out : "-"; });
  loop.run();
  return out;
}

TEST(Quoting, AWordStandsForExactlyItsText) {
  for (const std::string text :
       {"", "plain", "two words", "it's", "''", "$HOME `id` $(id)", "back\\slash\\", "a\nb\n",
        "\"double\"", "~ * ? [a]", "\xff\x80 bytes", "#go x\n#end", "-n", "!history!"}) {
    EXPECT_EQ(said_by_shell(shell_word(text)), text);
    EXPECT_FALSE(shell_word(text).contains('\n')) << "a script is read by line";
  }
}

}  // namespace
}  // namespace berth::places::ssh
