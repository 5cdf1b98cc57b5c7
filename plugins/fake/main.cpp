#include "fake/fake.hpp"
#include "sdk/provider.hpp"

#include <csignal>

int main(int argc, char** argv) {
  // Keepers are children that this process does not wait for.
  std::signal(SIGCHLD, SIG_IGN);
  return berth::sdk::serve<berth::fake::Fake>(argc, argv);
}
