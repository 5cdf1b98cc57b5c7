#include "app/sandbox_run.hpp"
#include "app/serve.hpp"
#include "cli/cli.hpp"

int main(int argc, char** argv) {
  return berth::cli::run(argc, argv, berth::app::serve, berth::app::run_sandbox);
}
