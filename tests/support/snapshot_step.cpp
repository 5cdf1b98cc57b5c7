// One step on a workspace, as a process that a test can let die at a fault point:
//
//     snapshot-step apply REPOSITORY TARGET BASE RESULT
//     snapshot-step accept REPOSITORY BUNDLE
#include "base/files.hpp"
#include "snapshots/apply.hpp"
#include "snapshots/beneath.hpp"
#include "snapshots/quarantine.hpp"

#include <cstdio>
#include <string>
#include <vector>

namespace berth::snapshots {
namespace {

Result<> apply_result(const Repository& repository, const std::vector<std::string>& words) {
  const auto base = ObjectId::from_hex(words.at(2));
  const auto result = ObjectId::from_hex(words.at(3));
  BERTH_DO(Apply(repository, words.at(1)).apply(base.value(), result.value()));
  return {};
}

Result<> accept_bundle_file(const Repository& repository, const std::string& file) {
  BERTH_TRY(const std::string bytes, read_file(file, 64 << 20));
  BERTH_DO(accept_bundle(repository, "r", "refs/heads/work", source_of(bytes)));
  return {};
}

Result<> run_step(const std::string& verb, const std::vector<std::string>& words) {
  BERTH_TRY(const Repository repository, Repository::open(GitProgram{}, words.at(0)));
  return verb == "apply" ? apply_result(repository, words)
                         : accept_bundle_file(repository, words.at(1));
}

}  // namespace
}  // namespace berth::snapshots

int main(int argc, char** argv) {
  const std::vector<std::string> words{argv + 1, argv + argc};
  const auto done = berth::snapshots::run_step(words.at(0), {words.begin() + 1, words.end()});
  if (!done) std::fprintf(stderr, "snapshot-step: %s\n", done.error().message.c_str());
  return done ? 0 : 1;
}
