#include "app/sandbox_run.hpp"
#include "app/serve.hpp"
#include "cli/cli.hpp"
#include "cli/print/failure.hpp"

#include <iostream>

int main(int argc, char** argv) {
  if (const auto filled = berth::cli::fill_standard_streams(); !filled) {
    std::cerr << berth::cli::error_text(filled.error(), false);
    return static_cast<int>(berth::cli::ExitCode::failure);
  }
  return berth::cli::run(argc, argv, berth::app::serve, berth::app::run_sandbox);
}
